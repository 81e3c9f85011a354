"""Before the first run: what would stop a later one is found, and what may be replaced is decided."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedfuse.core.errors import FedfuseError, RunFolderError
from fedfuse.core.origin import origin
from fedfuse.experiment.comparison import Cell, rehearse
from fedfuse.experiment.run import Experiment
from fedfuse.federation.folder import RunFolder
from tests.helpers import files_of, tiny_config, tiny_method

pytestmark = pytest.mark.usefixtures("without_pictures")

Study = Callable[..., list[Cell]]


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """FedAvg and FedProx with two seeds, on a file of one's own."""
    write_examples(tmp_path / "own.npz", seed=0)

    def make(strength: float = 0.1, seeds: tuple[int, ...] = (0, 1)) -> list[Cell]:
        data = {"name": "npz", "path": str(tmp_path / "own.npz"), "validation": 0.15, "public": 0.2}
        methods: list[Any] = ["fedavg", {**tiny_method("fedprox"), "local": {"strength": strength}}]
        cells = []
        for method in methods:
            for seed in seeds:
                config = tiny_config(method, data=data, seed=seed)
                folder = RunFolder(tmp_path / "study" / f"{config.method.name}-{seed}")
                cells.append(Cell(Experiment(config), folder))
        return cells

    return make


def write_examples(path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    labels = np.arange(120) % 3
    np.savez(path, x=random.normal(size=(120, 4)).astype("float32") + labels[:, None], y=labels)


def run(cells: list[Cell]) -> None:
    for cell in cells:
        cell.experiment.run(cell.folder.path, resume=cell.keep, overwrite=not cell.keep)


def kept(cells: list[Cell]) -> dict[str, bool]:
    return {cell.folder.path.name: cell.keep for cell in cells}


ALL = {"fedavg-0": True, "fedavg-1": True, "fedprox-0": True, "fedprox-1": True}


def test_an_impossible_run_is_found_before_the_first_and_named(tmp_path: Path) -> None:
    data = {"name": "blobs", "examples": 150, "validation": 0, "public": 0.2}
    cells = [
        Cell(Experiment(tiny_config(method, data=data)), RunFolder(tmp_path / "study" / method))
        for method in ("fedavg", "fedgkd-vote")
    ]
    with pytest.raises(FedfuseError, match=r"experiment fedgkd-vote seed 0: .* set data.validation"):
        rehearse(cells, overwrite=False)
    assert not (tmp_path / "study").exists()


def test_nothing_is_written_and_nothing_decided_where_nothing_is(study: Study, tmp_path: Path) -> None:
    assert kept(rehearse(study(), overwrite=False)) == kept(rehearse(study(), overwrite=True)) == ALL
    assert not (tmp_path / "study").exists()


def test_data_is_loaded_once_per_seed(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    from fedfuse.experiment.comparison import rehearsal

    loaded = []
    load = rehearsal.load_examples
    monkeypatch.setattr(rehearsal, "load_examples", lambda config, log: loaded.append(config.seed) or load(config, log))
    rehearse(study(), overwrite=False)
    assert loaded == [0, 1]


@pytest.mark.parametrize("overwrite", [False, True])
def test_the_very_same_runs_go_on_with_and_without_overwrite(study: Study, tmp_path: Path, overwrite: bool) -> None:
    run(study()[:3])
    before = files_of(tmp_path / "study")
    starts = (tmp_path / "study" / "fedavg-0" / "events.jsonl").read_text()
    cells = rehearse(study(), overwrite)
    assert kept(cells) == ALL
    run(cells)
    after = files_of(tmp_path / "study")
    assert {name: after[name] for name in before} == before
    assert (tmp_path / "study" / "fedavg-0" / "events.jsonl").read_text() == starts


def test_only_runs_of_another_experiment_are_replaced(study: Study, tmp_path: Path) -> None:
    run(study())
    with pytest.raises(RunFolderError, match=re.escape("method.local.strength is 0.1 there and 5.0 here")):
        rehearse(study(strength=5), overwrite=False)
    assert kept(rehearse(study(strength=5), overwrite=True)) == {**ALL, "fedprox-0": False, "fedprox-1": False}
    assert (tmp_path / "study" / "fedprox-0" / "summary.json").exists()  # until its turn comes


def test_finished_runs_on_other_data_are_not_mixed_with_new_ones(study: Study, tmp_path: Path) -> None:
    run(study(seeds=(0,)))
    write_examples(tmp_path / "own.npz", seed=1)
    with pytest.raises(RunFolderError, match="was begun with other contents of the data"):
        rehearse(study(), overwrite=False)
    assert kept(rehearse(study(), overwrite=True)) == {**ALL, "fedavg-0": False, "fedprox-0": False}


def test_a_finished_comparison_is_read_without_its_data(study: Study, tmp_path: Path) -> None:
    run(study())
    (tmp_path / "own.npz").unlink()
    assert kept(rehearse(study(), overwrite=False)) == ALL


def test_overwrite_replaces_what_another_version_made(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    run(study(seeds=(0,)))
    newer = replace(origin(), fedfuse="99.0")
    monkeypatch.setattr("fedfuse.experiment.earlier.origin", lambda: newer)
    assert kept(rehearse(study(), overwrite=False)) == ALL
    assert kept(rehearse(study(), overwrite=True)) == {**ALL, "fedavg-0": False, "fedprox-0": False}


def test_a_folder_of_other_files_is_refused_even_with_overwrite(study: Study, tmp_path: Path) -> None:
    thesis = tmp_path / "study" / "fedprox-1" / "thesis.tex"
    thesis.parent.mkdir(parents=True)
    thesis.write_text("dear reader")
    with pytest.raises(RunFolderError, match="holds other files"):
        rehearse(study(), overwrite=True)
    assert thesis.exists()


def test_a_run_that_this_version_cannot_read_is_another_experiment(study: Study, tmp_path: Path) -> None:
    run(study()[:1])
    config = tmp_path / "study" / "fedavg-0" / "config.yaml"
    config.write_text(config.read_text() + "gone: 1\n")
    with pytest.raises(RunFolderError, match=r"cannot read \(.*unknown key 'gone'.*\); choose another out="):
        rehearse(study(), overwrite=False)
    assert kept(rehearse(study(), overwrite=True)) == {**ALL, "fedavg-0": False}
