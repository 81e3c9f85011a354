"""What a row is compared with: the reference of its own setting, and the first one where it has none."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.report.runs import Made, write_run

import fedfuse
from fedfuse.core.errors import ConfigError
from fedfuse.experiment.looking.comparison import Comparison
from fedfuse.experiment.looking.pairing import differences, reference_of
from fedfuse.experiment.looking.tables import difference_sheet


def written(folder: Path, *rows: tuple[str, float, float]) -> Comparison:
    """A method at a learning rate, and the accuracy that it tends to, each with three seeds."""
    for number, (method, rate, level) in enumerate(rows):
        for seed in range(3):
            sections = {"training": {"optimizer": {"kind": "sgd", "learning_rate": rate}}}
            write_run(folder / f"{number}-{seed}", Made(method, seed, 40, level=level, sections=sections))
    return fedfuse.load_runs(folder)


def against(found: Comparison, reference: str | None = None) -> list[int | None]:
    apart = differences(found.lines, reference_of(found.lines, reference))
    return [None if own is None else own.against for own in apart]


def test_methods_are_compared_within_their_own_setting(tmp_path: Path) -> None:
    found = written(tmp_path, ("fedavg", 0.1, 0.8), ("fedavg", 0.01, 0.4), ("feddf", 0.1, 0.81), ("feddf", 0.01, 0.41))
    assert against(found) == [None, None, 0, 1]
    assert against(found, "feddf") == [2, 3, None, None]
    sheet = difference_sheet(found)
    assert sheet is not None
    assert sheet.title.startswith("last accuracy against fedavg of the same setting, seed by seed")
    assert "differences from fedavg of the same setting, seed by seed" in found.table(columns=["difference"])


def test_rows_of_one_method_are_compared_with_the_first_of_them(tmp_path: Path) -> None:
    found = written(tmp_path, ("feddf", 0.1, 0.8), ("feddf", 0.01, 0.4), ("feddf", 0.03, 0.6))
    assert against(found) == [None, 0, 0]
    sheet = difference_sheet(found)
    assert sheet is not None
    assert sheet.title.startswith("last accuracy against feddf training.optimizer.learning_rate=0.1, seed by seed")
    assert [numbers[0] for _, numbers in sheet.rows] == ["-34.59", "-17.29"]


def test_who_has_no_reference_in_its_setting_says_which_row_it_is_compared_with(tmp_path: Path) -> None:
    found = written(tmp_path, ("fedavg", 0.1, 0.8), ("fedavg", 0.01, 0.4), ("feddf", 0.01, 0.4), ("fedbe", 0.2, 0.4))
    assert against(found) == [None, None, 1, 0]
    sheet = difference_sheet(found)
    assert sheet is not None
    assert sheet.headings[-1] == "against"
    rates = [numbers[-1].rpartition("=")[2] for _, numbers in sheet.rows]
    assert rates == ["0.01", "0.1"]


def test_rows_of_an_experiment_stand_together(tmp_path: Path) -> None:
    for number, (name, method) in enumerate([("one", "fedavg"), ("two", "fedavg"), ("one", "feddf"), ("two", "feddf")]):
        write_run(tmp_path / str(number), Made(method, name=name))
    rows = fedfuse.load_runs(tmp_path).rows
    assert [(row.experiment, row.method) for row in rows] == [
        ("one", "fedavg"),
        ("one", "feddf"),
        ("two", "fedavg"),
        ("two", "feddf"),
    ]


def test_a_reference_is_for_several_rows(tmp_path: Path) -> None:
    found = written(tmp_path, ("feddf", 0.1, 0.8))
    with pytest.raises(ConfigError, match=r"here is nothing but 'feddf'; reference= is for several rows"):
        found.describe(reference="feddf")
    with pytest.raises(ConfigError, match="nothing but 'feddf'"):
        found.table("json", reference="feddf")
    with pytest.raises(ConfigError, match="'difference' is of several rows, and here is only one"):
        found.table(columns=["difference"])
    with pytest.raises(ConfigError, match="a reference is for several runs"):
        fedfuse.load_runs(tmp_path / "0-0").describe(reference="feddf")
