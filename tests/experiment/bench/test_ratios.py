"""Ratios: inside one turn, with their spread."""

from __future__ import annotations

from fedfuse.experiment.bench.ratios import figure, tables
from fedfuse.experiment.bench.turns import Turn
from fedfuse.experiment.bench.workloads.base import Row, Workload

ROWS = (
    Row("against the loop", "ours", "cpu", "loop"),
    Row("late against early", "ours", "late", "ours", "cpu"),
    Row("by itself", "ours", "memory", unit="MB"),
    Row("nobody", "absent", "cpu", "loop"),
)
WORKLOAD = Workload("T", "a test", "nothing", (), ROWS)


def turn(contender: str, number: int, **numbers: float) -> Turn:
    return Turn("T", contender, number, numbers)


def test_each_ratio_is_of_one_turn() -> None:
    turns = [
        *(turn("loop", 0, cpu=1), turn("ours", 0, cpu=2, late=4, memory=10)),
        *(turn("loop", 1, cpu=10), turn("ours", 1, cpu=5, late=5, memory=3000)),
        *(turn("loop", 2, cpu=4), turn("ours", 2, cpu=4, late=4, memory=20)),
    ]
    (table,) = tables([WORKLOAD], turns)
    assert {line.label: line.text() for line in table.lines} == {
        "against the loop": "1.00 [0.50..2.00]",
        "late against early": "1.00 [1.00..2.00]",
        "by itself": "20 [10..3,000] MB",
    }


def test_a_turn_without_its_base_has_no_ratio() -> None:
    turns = [turn("ours", 0, cpu=2), turn("loop", 1, cpu=1), turn("ours", 1, cpu=3), turn("loop", 2, cpu=0)]
    (table,) = tables([WORKLOAD], turns)
    assert [(line.label, line.values) for line in table.lines] == [("against the loop", (3.0,))]


def test_failures_and_choices_are_told() -> None:
    turns = [Turn("T", "peer", 0, failure="it cannot be installed"), Turn("T", "ours", 0, {"cpu": 1}, "workers 2")]
    (table,) = tables([WORKLOAD], turns)
    assert table.failures == ("peer: it cannot be installed",)
    assert table.chosen == {"ours": "workers 2"}


def test_nothing_to_say_is_no_table() -> None:
    assert tables([WORKLOAD], []) == []


def test_ratios_have_two_decimals_and_large_numbers_none() -> None:
    assert [figure(0.424), figure(12.36), figure(233.4), figure(1234.6, "bytes"), figure(5.57, "s")] == [
        *("0.42", "12.36", "233", "1,235", "5.6")
    ]
