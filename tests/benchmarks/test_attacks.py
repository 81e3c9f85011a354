"""Tables of attacks are made of all that was measured, and say of how many seeds."""

from __future__ import annotations

from pathlib import Path

from benchmarks.attacks.grid import FAMILIES, SHARES, cells
from benchmarks.attacks.store import Store
from benchmarks.attacks.tables import everything, summary


def measured(path: Path, family: str, seeds: int, shares: tuple[float, ...] = SHARES) -> Store:
    """A store in which every attack costs ten times its share, half of that with bounds."""
    store = Store(path)
    for cell in cells("digits", (family,)):
        if cell.share in (0.0, *shares):
            for seed in range(seeds):
                cost = 100 * cell.share * (0.5 if "bounds" in cell.defence else 1.0)
                store.add(cell, seed, {"accuracy": 90 + seed - cost})
    return store


def rows(text: str, start: str) -> list[list[str]]:
    """The cells of all rows that begin with this."""
    lines = [line.strip("| ") for line in text.splitlines() if line.startswith(f"| {start}")]
    return [line.split(" | ") for line in lines]


def test_what_was_measured_earlier_stays_in_the_tables(tmp_path: Path) -> None:
    measured(tmp_path / "digits.jsonl", "one-fedavg", seeds=1)
    store = measured(tmp_path / "digits.jsonl", "predictions", seeds=1)
    assert {FAMILIES[name].title for name in ("one-fedavg", "predictions")} <= {
        line.split(": ")[1].removesuffix(", one seed")
        for line in everything(store, "digits").splitlines()
        if line[:1] == "#"
    }


def test_a_cell_has_the_mean_without_bounds_with_them_and_the_cost_that_they_leave(tmp_path: Path) -> None:
    said = everything(measured(tmp_path / "digits.jsonl", "one-feddf", seeds=3), "digits")
    assert "mean of 3 seeds" in said
    assert rows(said, "label flip") == [["label flip", *(4 * ["81.0 / 86.0 (5.0)"])]]  # of 91 on average


def test_shares_that_were_not_measured_have_neither_column_nor_table(tmp_path: Path) -> None:
    store = measured(tmp_path / "digits.jsonl", "feddf", seeds=1, shares=(0.4,))
    assert rows(summary(store, "digits"), "defence") == [
        ["defence", "iid: nobody", "40%", "dirichlet 1: nobody", "40%"]
    ]
    assert "40% attack" in everything(store, "digits")
    assert "10% attack" not in everything(store, "digits")


def test_every_defence_has_the_worst_attack_of_every_share_and_elsewhere_all_of_them(tmp_path: Path) -> None:
    store = Store(tmp_path / "digits.jsonl")
    for cell in cells("digits", ("predictions",)):
        cost = 100 * cell.share * {"none": 0.0, "constant": 2.0}.get(cell.attack, 1.0)
        store.add(cell, 0, {"accuracy": 90 - cost})
    left = [f"{90 - 200 * share:.1f} (constant)" for share in SHARES[1:]]
    assert rows(summary(store, "digits"), "`median`") == [["`median`", *(2 * ["90.0", *left])]]
    every = rows(everything(store, "digits"), "`median`")
    assert every == [
        ["`median`", "90.0", *_of(share)] for _ in FAMILIES["predictions"].partitions for share in SHARES[1:]
    ]


def _of(share: float) -> list[str]:
    return [f"{90 - 100 * share * (2 if say == 'constant' else 1):.1f}" for say in FAMILIES["predictions"].attacks]


def test_a_defence_of_which_an_attack_was_not_measured_has_no_worst_one(tmp_path: Path) -> None:
    whole, *_ = (cell for cell in cells("digits", ("predictions",)) if cell.share == 0.4)
    store = Store(tmp_path / "digits.jsonl")
    for cell in cells("digits", ("predictions",)):
        if cell != whole:
            store.add(cell, 0, {"accuracy": 90.0})
    assert rows(summary(store, "digits"), "defence") == [
        ["defence", "iid: nobody", "10%", "20%", "dirichlet 1: nobody", "10%", "20%", "40%"]
    ]


def test_the_number_of_seeds_is_that_of_the_cell_with_fewest(tmp_path: Path) -> None:
    store = measured(tmp_path / "digits.jsonl", "predictions", seeds=2)
    store.add(next(iter(cells("digits", ("predictions",)))), 2, {"accuracy": 50.0})
    assert store.seeds(cells("digits", ("predictions",))) == 2


def test_the_worst_of_one_client_is_told_beside_honest_ones_and_beside_its_absence(tmp_path: Path) -> None:
    store = Store(tmp_path / "digits.jsonl")
    for cell in cells("digits", ("one-mixed",)):
        cost = {"none": 0.0, "refused": 2.0, "loud": 7.0}.get(cell.attack, 1.0)
        store.add(cell, 0, {"accuracy": 90 - cost})
    said = summary(store, "digits")
    assert rows(said, "FedDF of three") == [
        ["FedDF of three architectures, one seed", "costs most", *(4 * ["7.0 (loud)"])]
    ]
    assert [row[-1] for row in rows(said, " | ")] == ["5.0 (loud)", "90.0 / 90.0"]


def test_what_was_not_measured_at_all_has_no_table(tmp_path: Path) -> None:
    store = Store(tmp_path / "digits.jsonl")
    assert summary(store, "digits") == everything(store, "digits") == ""
