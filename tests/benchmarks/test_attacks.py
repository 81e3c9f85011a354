"""Tables of attacks are made of all that was measured, and say of how many seeds."""

from __future__ import annotations

from pathlib import Path

from benchmarks.attacks.grid import FAMILIES, SHARES, cells
from benchmarks.attacks.store import Store
from benchmarks.attacks.tables import text


def measured(path: Path, family: str, seeds: int, shares: tuple[float, ...] = SHARES) -> Store:
    """A store in which every attack costs ten times its share, half of that with bounds."""
    store = Store(path)
    for cell in cells("digits", (family,)):
        if cell.share in (0.0, *shares):
            for seed in range(seeds):
                cost = 100 * cell.share * (0.5 if "bounds" in cell.defence else 1.0)
                store.add(cell, seed, {"accuracy": 90 + seed - cost})
    return store


def test_what_was_measured_earlier_stays_in_the_tables(tmp_path: Path) -> None:
    measured(tmp_path / "digits.jsonl", "one-fedavg", seeds=1)
    store = measured(tmp_path / "digits.jsonl", "predictions", seeds=1)
    assert {FAMILIES[name].title for name in ("one-fedavg", "predictions")} <= {
        line.split(": ")[1].removesuffix(", one seed") for line in text(store, "digits").splitlines() if line[:1] == "#"
    }


def test_a_cell_has_the_mean_without_bounds_with_them_and_the_cost_that_they_leave(tmp_path: Path) -> None:
    said = text(measured(tmp_path / "digits.jsonl", "one-feddf", seeds=3), "digits")
    assert "mean of 3 seeds" in said
    row = next(line for line in said.splitlines() if line.startswith("| label flip |"))
    assert row.count("81.0 / 86.0 (5.0)") == len(FAMILIES["one-feddf"].partitions)  # of 91 on average


def test_shares_that_were_not_measured_have_no_column(tmp_path: Path) -> None:
    said = text(measured(tmp_path / "digits.jsonl", "feddf", seeds=1, shares=(0.4,)), "digits")
    assert "worst at 40%" in said
    assert "worst at 10%" not in said


def test_the_number_of_seeds_is_that_of_the_cell_with_fewest(tmp_path: Path) -> None:
    store = measured(tmp_path / "digits.jsonl", "predictions", seeds=2)
    store.add(next(iter(cells("digits", ("predictions",)))), 2, {"accuracy": 50.0})
    assert store.seeds(cells("digits", ("predictions",))) == 2
