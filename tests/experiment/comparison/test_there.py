"""Runs that are there, side by side: read and never run again, and never taken for each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fedfuse
from fedfuse.core.errors import ConfigError, RunFolderError
from fedfuse.experiment.comparison import plan
from fedfuse.experiment.run import Experiment
from tests.helpers import Recorder, tiny_config

pytestmark = pytest.mark.usefixtures("without_pictures")


def run(folder: Path, seed: int = 0, alpha: float = 1.0, method: str = "fedavg", **sections: object) -> Path:
    partition = {"kind": "dirichlet", "clients": 4, "alpha": alpha, "min_examples": 2}
    Experiment(tiny_config(method, seed=seed, partition=partition, **sections)).run(folder)
    return folder


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds with one alpha, one with another."""
    folder = tmp_path_factory.mktemp("there")
    for name, seed, alpha in (("a0", 0, 1.0), ("a1", 1, 1.0), ("b0", 0, 5.0)):
        run(folder / name, seed, alpha)
    return folder


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("overwrite", [False, True])
def test_finished_runs_are_read_even_without_their_data(
    there: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool
) -> None:
    for data in ("load_examples", "build"):
        monkeypatch.setattr(f"fedfuse.experiment.comparison.rehearsal.{data}", pytest.fail)
    before = {path: path.stat().st_mtime_ns for path in there.rglob("*")}
    told = Recorder()
    comparison = fedfuse.compare([there / "a0", there / "a1"], progress=told, overwrite=overwrite)
    assert [(row.method, row.seeds) for row in comparison.rows] == [("fedavg", (0, 1))]
    assert len(told.of("study_run_found")) == 2
    assert {path: path.stat().st_mtime_ns for path in there.rglob("*")} == before
    assert comparison.folder == Path("runs/compare-experiment")


def test_runs_that_differ_in_more_than_the_seed_are_never_averaged(there: Path, tmp_path: Path) -> None:
    comparison = fedfuse.compare([there / "a0", there / "a1", there / "b0"], out=tmp_path)
    assert [(row.experiment, row.variant, row.seeds) for row in comparison.rows] == [
        ("experiment", "alpha=1", (0, 1)),
        ("experiment", "alpha=5", (0,)),
    ]


def test_a_folder_of_runs_stands_for_all_of_them(there: Path) -> None:
    comparison = fedfuse.compare(there)
    assert len(comparison.rows) == 2
    assert json.loads((there / "comparison.json").read_text())["unfinished"] == []


def test_the_same_run_twice_is_refused(there: Path) -> None:
    with pytest.raises(ConfigError, match="two runs of this comparison are experiment fedavg seed 0"):
        plan([there / "a0", there / "a0"], [], [])


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="is a folder without any run"):
        plan([tmp_path], [], [])


def test_an_unfinished_run_goes_on_where_it_lies(there: Path, tmp_path: Path) -> None:
    def stop(event: dict[str, object]) -> None:
        if event["event"] == "round_started" and event["round"] == 2:
            raise KeyboardInterrupt

    config = tiny_config(partition={"kind": "dirichlet", "clients": 4, "alpha": 1.0, "min_examples": 2}, seed=2)
    with pytest.raises(KeyboardInterrupt):
        Experiment(config).run(tmp_path / "c", listeners=(stop,))
    comparison = fedfuse.compare([there / "a0", tmp_path / "c"], out=tmp_path / "study")
    assert comparison.rows[0].seeds == (0, 2)
    assert (tmp_path / "c" / "summary.json").exists()


def test_with_other_methods_a_run_folder_is_an_experiment_whose_own_run_is_not_made_again(
    there: Path, tmp_path: Path
) -> None:
    study = plan([there / "a0"], ["fedavg", "fedprox"], [0, 5], out=tmp_path)
    folders = {cell.label: cell.folder.path for cell in study.cells}
    assert folders["experiment fedavg seed 0"] == there / "a0"
    assert folders["experiment fedavg seed 5"] == tmp_path / "experiment-fedavg-seed5"
    assert folders["experiment fedprox seed 0"] == tmp_path / "experiment-fedprox-seed0"
    assert study.folder == tmp_path


def test_what_lies_in_a_named_folder_is_never_replaced(there: Path, tmp_path: Path) -> None:
    """Not even by --overwrite, which replaces runs of another version."""
    log = there / "b0" / "events.jsonl"
    whole = log.read_text()
    try:
        log.write_text(whole.replace('"run_started"', '"run_started", "origin": {"fedfuse": "0"}, "x"', 1))
        with pytest.raises(RunFolderError, match="line 1 is damaged"):
            fedfuse.compare([there / "b0"], overwrite=True, out=tmp_path)
    finally:
        log.write_text(whole)
    assert fedfuse.compare([there / "b0"], overwrite=True, out=tmp_path).rows[0].seeds == (0,)
