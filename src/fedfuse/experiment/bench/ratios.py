"""From turns to the table: each ratio is made inside one turn, and shown with its spread over the turns."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fedfuse.experiment.bench.turns import Turn
from fedfuse.experiment.bench.workloads.base import Row, Workload


@dataclass(frozen=True)
class Line:
    """A row with its values, one per turn."""

    label: str
    values: tuple[float, ...]
    unit: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def text(self) -> str:
        """The median with [smallest..largest]."""
        shown = [figure(value, self.unit) for value in (self.median, min(self.values), max(self.values))]
        spread = f" [{shown[1]}..{shown[2]}]" if len(self.values) > 1 else ""
        return f"{shown[0]}{spread} {self.unit}".rstrip()


@dataclass(frozen=True)
class Table:
    """One workload."""

    code: str
    title: str
    meaning: str
    lines: tuple[Line, ...]
    chosen: Mapping[str, str]
    """What fedfuse chose by itself, by contender."""
    failures: tuple[str, ...]


def tables(workloads: Sequence[Workload], turns: Sequence[Turn]) -> list[Table]:
    """Those of which there is anything to say."""
    made = (_table(workload, [turn for turn in turns if turn.workload == workload.code]) for workload in workloads)
    return [table for table in made if table.lines or table.failures]


def figure(value: float, unit: str = "") -> str:
    """Ratios to the second decimal, large numbers whole."""
    return (
        f"{value:,.0f}"
        if unit in ("bytes", "MB") or abs(value) >= 100
        else f"{value:.2f}"
        if not unit
        else f"{value:.1f}"
    )


def _table(workload: Workload, turns: Sequence[Turn]) -> Table:
    good = {(turn.contender, turn.number): turn.numbers for turn in turns if not turn.failure}
    lines = tuple(line for row in workload.rows for line in _line(row, good))
    chosen = {turn.contender: turn.chosen for turn in turns if turn.chosen}
    failures = {turn.contender: turn.failure for turn in turns if turn.failure}
    return Table(workload.code, workload.title, workload.meaning, lines, chosen, _told(failures))


def _told(sentences: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{name}: {sentence}" for name, sentence in sentences.items())


def _line(row: Row, numbers: Mapping[tuple[str, int], Mapping[str, float]]) -> Iterator[Line]:
    """None if there is no turn in which both sides have their number."""
    values = tuple(
        own[row.number] / _divisor(row, numbers.get((row.base or "", number), {}))
        for (contender, number), own in numbers.items()
        if contender == row.contender and row.number in own
        and (row.base is None or _divisor(row, numbers.get((row.base, number), {})))
    )  # fmt: skip
    if values:
        yield Line(row.label, values, row.unit)


def _divisor(row: Row, base: Mapping[str, float]) -> float:
    """1 for a number that stands by itself, 0 where the other side has none."""
    return 1.0 if row.base is None else base.get(row.base_number or row.number, 0.0)
