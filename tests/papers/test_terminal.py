"""Tables of ``fedfuse reproduce`` in a terminal of 80 columns."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from fedfuse.report.intervals import Interval
from fedfuse_papers.cells import cells_of
from fedfuse_papers.claims import Verdict
from fedfuse_papers.entries import claims_of, load_entry, names
from fedfuse_papers.ledger import Ledger, Row, ledger
from fedfuse_papers.store import Measured, Store
from fedfuse_papers.terminal import cell_table, claim_text

NUMBERS = {0: Measured(89.12), 1: Measured(64.35), 2: Measured(42.0)}


def shown(one: Ledger) -> str:
    console = Console(file=io.StringIO(), width=80)
    console.print(cell_table(one))
    console.print(*claim_text(one), sep="\n")
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def row(value: float, **labels: str) -> Row:
    return Row(labels, None, {0: Measured(value)}, {0: "a" * 20})


def small(*rows: Row, verdicts: list[Verdict] | None = None) -> Ledger:
    return Ledger("paper/table", "A table", "small", "%", [0], list(rows), verdicts or [], "", [])


@pytest.mark.parametrize("name", names())
def test_no_label_is_broken_inside_a_word(name: str, tmp_path: Path) -> None:
    entry = load_entry(name)
    cells = [cell for cell in cells_of(name, entry, "paper") if cell.is_possible]
    empty = ledger(name, entry, claims_of(name), cells, "paper", [], Store(tmp_path))
    full = replace(empty, rows=[replace(one, values=NUMBERS) for one in empty.rows])
    text = shown(full)
    words = {word for one in full.rows for label in one.labels.values() for word in label.split()}
    assert words <= {word for found in text.split() for word in (found, found.rstrip(","))}
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("65.16 ± 23.57") == len(full.rows)


def test_labels_that_cells_share_stand_above_them_once() -> None:
    text = shown(
        small(
            row(1.0, alpha="0.1", model="A", method="FedAvg"),
            row(2.0, alpha="0.1", model="A", method="FedDF"),
            row(3.0, alpha="1", model="A", method="FedAvg"),
            row(4.0, alpha="1", model="A", method="FedDF"),
        )
    )
    lines = [" ".join(line.split()) for line in text.splitlines()]
    start = lines.index("alpha 0.1, A")
    assert lines[start - 2].startswith("method printed ours")
    assert lines[start + 1 : start + 6] == [
        "FedAvg - 1.00 1 -",
        "FedDF - 2.00 1 -",
        "alpha 1, A",
        "FedAvg - 3.00 1 -",
        "FedDF - 4.00 1 -",
    ]


def test_an_axis_with_one_label_left_is_not_the_one_that_cells_are_listed_by() -> None:
    text = shown(small(row(1.0, method="FedAvg", alpha="0.1"), row(2.0, method="FedDF", alpha="0.1")))
    assert text.count("0.1\n") + text.count("0.1 ") == 1
    assert shown(small(row(1.0, method="FedAvg"))).count("FedAvg") == 1


def test_a_claim_stands_once_above_its_pairs() -> None:
    apart = {"method": "FedDF"}, {"method": "FedAvg"}
    verdicts = [
        Verdict("FedDF is above", *apart, 4.5, Interval(2.0, -0.5, 4.5, 3), "not enough seeds"),
        Verdict("FedDF is above", *apart, None, Interval(2.0, None, None, 1), "not enough seeds"),
        Verdict("FedDF is far above", *apart, 4.5, Interval(9.0, 8.5, 9.5, 3), "holds"),
    ]
    lines = shown(small(row(1.0, method="FedDF"), verdicts=verdicts)).splitlines()
    assert lines[lines.index("FedDF is above") :] == [
        "FedDF is above",
        "  FedDF / FedAvg",
        "    not enough seeds: +2.00 (-0.50 to +4.50; seeds: 3), printed +4.50",
        "  FedDF / FedAvg",
        "    not enough seeds: +2.00 (seeds: 1), printed -",
        "FedDF is far above",
        "  FedDF / FedAvg",
        "    holds: +9.00 (+8.50 to +9.50; seeds: 3), printed +4.50",
        "",
    ]
