"""What the commands do, as functions: the same files, and results that can be read again."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedfuse
from fedfuse.core.errors import ConfigError, DataError, MissingExtraError, RunFolderError
from fedfuse.experiment.run import Experiment
from fedfuse.methods import METHODS
from tests.cli.test_cli import InProcess, in_process
from tests.experiment.test_python_values import TINY
from tests.helpers import Recorder, events_of, files_of, without_seconds

__all__ = ["in_process"]

pytestmark = pytest.mark.usefixtures("without_pictures")
RANDOM = np.random.default_rng(3)
INPUTS = RANDOM.normal(size=(80, 2))
LABELS = np.array(["left", "right"])[(INPUTS[:, 0] > 0).astype(int)]
ARRAYS = {**TINY, "data": (INPUTS, LABELS)}


class StopError(Exception):
    """Raised by a listener, in the place of Ctrl-C."""


def stop_after(number: int) -> Any:
    def listener(event: Any) -> None:
        if event["event"] == "round_started" and event["round"] == number + 1:
            raise StopError

    return listener


def stopped(folder: Path, study: Any = TINY, after: int = 1) -> None:
    with pytest.raises(StopError):
        fedfuse.run(study, out=folder, progress=stop_after(after))


def finals(folder: Path) -> dict[str, bytes]:
    """The models; checkpoints also hold what a clock measured."""
    return {name: content for name, content in files_of(folder).items() if "final/" in name}


def test_all_ways_to_name_an_experiment_lead_to_the_same_bits(tmp_path: Path) -> None:
    first = fedfuse.run(TINY, seed=1, method="fedprox", out=tmp_path / "keys")
    experiment = Experiment(TINY, seed=1, method="fedprox")
    ways = {"object": experiment, "folder": first.folder.path, "file": str(first.folder.config)}
    for name, way in ways.items():
        fedfuse.run(way, out=tmp_path / name)
        assert finals(tmp_path / name) == finals(tmp_path / "keys")


def test_the_default_folder_names_experiment_method_and_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert fedfuse.run(TINY, seed=4).folder.path == Path("runs/experiment-fedavg-seed4")


def test_a_second_call_into_the_same_folder_changes_nothing(tmp_path: Path) -> None:
    fedfuse.run(TINY, out=tmp_path)
    before = files_of(tmp_path)
    with pytest.raises(RunFolderError, match=r"already holds a run; add resume=True .* overwrite=True .* out=$"):
        fedfuse.run(TINY, out=tmp_path, resume=False)
    for resume in (None, True):
        with pytest.raises(RunFolderError, match="holds another experiment: seed is 0 there and 1 here"):
            fedfuse.run(TINY, seed=1, out=tmp_path, resume=resume)
    assert files_of(tmp_path) == before


def test_progress_is_printed_or_given_to_a_listener(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fedfuse.run(TINY, out=tmp_path / "quiet")
    assert capsys.readouterr().out == ""
    fedfuse.run(TINY, out=tmp_path / "lines", progress=True)
    chosen, first, second = capsys.readouterr().out.splitlines()
    assert chosen == "left to fedfuse: compute.channels_last=false, compute.stack=true"
    assert first.startswith("experiment fedavg seed 0: round 1/2 mlp ")
    assert second.startswith("experiment fedavg seed 0: round 2/2 mlp ")
    heard = Recorder()
    fedfuse.run(TINY, out=tmp_path / "heard", progress=heard)
    assert len(heard.of("round_finished")) == 2


def test_a_stored_run_is_what_the_run_returned(tmp_path: Path) -> None:
    result = fedfuse.run(
        TINY,
        method="feddf",
        out=tmp_path,
        data={"name": "blobs", "examples": 90, "public": 0.2},
        methods={"feddf": {"fuse": {"distiller": {"steps": 3}}}},
    )
    stored = fedfuse.load_run(tmp_path)
    assert stored == replace(result, summary=json.loads(json.dumps(result.summary)))
    assert stored.model().state_dict().keys() == result.model().state_dict().keys()
    assert repr(stored) == repr(result)


def test_a_run_from_arrays_is_read_without_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = fedfuse.run(ARRAYS, out=tmp_path)
    monkeypatch.setattr("fedfuse.data.given.memory._held", {})
    assert fedfuse.load_run(tmp_path).accuracy == result.accuracy
    assert fedfuse.run(tmp_path, resume=True).accuracy == result.accuracy


def test_an_unfinished_run_says_so(tmp_path: Path) -> None:
    stopped(tmp_path)
    result = fedfuse.load_run(tmp_path)
    assert not result.is_finished
    assert [record.round for record in result.history] == [1]
    assert ", unfinished, 1 rounds," in repr(result)
    assert "unfinished" in result._repr_html_()
    with pytest.raises(RunFolderError, match="has no final model yet; resume it"):
        result.model()
    assert fedfuse.run(tmp_path, resume=True).is_finished
    assert fedfuse.load_run(tmp_path).is_finished


def test_a_folder_without_a_run_is_refused_in_one_sentence(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(RunFolderError, match="holds no run; give the folder that a run has written"):
            fedfuse.load_run(folder)


def test_a_run_from_arrays_goes_on_where_they_are_given_again(
    tmp_path: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    fedfuse.run(ARRAYS, out=tmp_path / "whole")
    stopped(tmp_path / "run", ARRAYS)
    monkeypatch.setattr("fedfuse.data.given.memory._held", {})  # as in another process
    done = in_process("run", "run", "--resume")
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "fedfuse: the arrays of this experiment came from Python and are not in this process; give them again, as in "
        "fedfuse.run(FOLDER, data=..., resume=True)"
    )
    with pytest.raises(DataError, match="give them again"):
        fedfuse.run(tmp_path / "run", resume=True)
    with pytest.raises(RunFolderError, match=r"holds another experiment: data\.path is"):
        fedfuse.run(tmp_path / "run", data=(INPUTS + 1, LABELS), resume=True)
    fedfuse.run(tmp_path / "run", data=(INPUTS, LABELS), resume=True)
    assert finals(tmp_path / "run") == finals(tmp_path / "whole")


def test_nothing_of_the_arrays_is_written(tmp_path: Path) -> None:
    fedfuse.run(ARRAYS, out=tmp_path)
    names = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert not [name for name in names if name.endswith((".npz", ".npy", ".parquet", ".pkl"))]
    rows = [row.tobytes() for row in INPUTS.astype(np.float32)]
    assert not any(row in path.read_bytes() for path in tmp_path.rglob("*.safetensors") for row in rows[:9])


def test_worker_processes_get_the_arrays(tmp_path: Path) -> None:
    fedfuse.run(ARRAYS, out=tmp_path / "one")
    fedfuse.run(ARRAYS, out=tmp_path / "two", engine={"workers": 2})
    assert finals(tmp_path / "one") == finals(tmp_path / "two")


def test_compare_does_what_the_command_does(tmp_path: Path, in_process: InProcess) -> None:
    (tmp_path / "study.yaml").write_text(Experiment(TINY).config.to_yaml())
    options = ("--methods", "fedavg,fedprox", "--seeds", "0,1", "--set", "training.epochs=2", "--out", "cli")
    done = in_process("compare", "study.yaml", *options)
    assert done.returncode == 0, done.stderr
    fedfuse.compare(TINY, ["fedavg", "fedprox"], [0, 1], training={"epochs": 2}, out=tmp_path / "python")
    one, other = (json.loads((tmp_path / name / "comparison.json").read_text()) for name in ("cli", "python"))
    assert without_seconds(one) == without_seconds(other)
    assert finals(tmp_path / "cli") == finals(tmp_path / "python")


def test_compare_gives_the_same_in_several_processes_from_arrays(tmp_path: Path) -> None:
    one, two = (fedfuse.compare(ARRAYS, ["fedavg", "fedprox"], out=tmp_path / str(jobs), jobs=jobs) for jobs in (1, 2))
    assert finals(one.folder) == finals(two.folder)
    assert [row["accuracy_last"] for row in one.records()] == [row["accuracy_last"] for row in two.records()]


def test_compare_takes_methods_as_objects_and_mappings(tmp_path: Path) -> None:
    mine = replace(METHODS["fedprox"], name="mine")
    strong = {"name": "fedprox", "label": "strong", "local": {"strength": 5.0}}
    comparison = fedfuse.compare(TINY, ["fedprox", mine, METHODS["fedavg"], strong], out=tmp_path)
    assert [row.method for row in comparison.rows] == ["fedprox", "mine", "fedavg", "strong"]
    assert comparison.rows[0].accuracy_last == comparison.rows[1].accuracy_last


def test_one_method_and_one_seed_need_no_list(tmp_path: Path) -> None:
    (row,) = fedfuse.compare(TINY, "fedprox", 3, out=tmp_path).rows
    assert (row.method, row.seeds) == ("fedprox", (3,))


def test_finished_runs_are_read_and_a_failure_keeps_them(tmp_path: Path) -> None:
    def listener(event: Any) -> None:
        if event["event"] == "study_run_started" and "fedprox" in event["run"]:
            raise StopError

    with pytest.raises(StopError):
        fedfuse.compare(TINY, ["fedavg", "fedprox"], out=tmp_path, progress=listener)
    assert json.loads((tmp_path / "comparison.json").read_text())["unfinished"] == ["experiment fedprox seed 0"]
    heard = Recorder()
    fedfuse.compare(TINY, ["fedavg", "fedprox"], out=tmp_path, progress=heard)
    assert [event["run"] for event in heard.of("study_run_found")] == ["experiment fedavg seed 0"]
    assert [event["run"] for event in heard.of("study_run_started")] == ["experiment fedprox seed 0"]


def test_an_impossible_method_stops_a_comparison_before_its_first_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown method 'fedarg'"):
        fedfuse.compare(TINY, ["fedavg", "fedarg"], out=tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_records_are_the_rounds_of_the_log(tmp_path: Path) -> None:
    result = fedfuse.run(TINY, models={"a": {"arch": "mlp"}, "b": {"arch": "mlp"}}, out=tmp_path)
    rounds = events_of(tmp_path, "round_finished")
    assert [(row["round"], row["model"]) for row in result.records()] == [(1, "a"), (1, "b"), (2, "a"), (2, "b")]
    for row in result.records():
        event = rounds[row["round"] - 1]
        assert row["accuracy"] == event["prototypes"][row["model"]]["accuracy"]
        assert row["bytes_up"] == event["bytes_up"]
        assert row["clients"] == len(event["clients"])


def test_frames_hold_the_records(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    comparison = fedfuse.compare(TINY, ["fedavg", "fedprox"], [0, 1], out=tmp_path)
    frame = comparison.to_frame()
    assert list(frame["seed"]) == [0, 1, 0, 1]
    for row in comparison.rows:
        assert row.accuracy_last is not None
        assert frame[frame.method == row.method].accuracy_last.mean() == pytest.approx(row.accuracy_last.mean)
    run = fedfuse.load_run(tmp_path / "experiment-fedavg-seed0")
    assert list(run.to_frame().accuracy) == [row["accuracy"] for row in run.records()]


def test_without_pandas_a_frame_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = fedfuse.run(TINY, out=tmp_path)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fedfuse\[pandas\]'"):
        result.to_frame()


def test_reprs_say_what_it_is(tmp_path: Path) -> None:
    experiment = Experiment(TINY, seed=2)
    models, identity = "models mlp, 2 rounds", experiment.config.sha256()[:8]
    assert repr(experiment) == f"Experiment(experiment: fedavg on blobs, {models}, seed 2, identity {identity})"
    result = experiment.run(tmp_path / "<b>&")
    accuracy, seconds = result.accuracy["mlp"], result.summary["seconds"]
    assert f"{100 * accuracy:.2f}".rstrip("0").rstrip(".") in repr(result)
    assert repr(result).startswith("RunResult(experiment fedavg seed 2: mlp ")
    assert repr(result).endswith(f" %, 2 rounds, {seconds:.1f} s, {tmp_path}/<b>&)")
    comparison = fedfuse.compare(experiment, ["fedavg"], out=tmp_path / "<i>")
    assert comparison.rows[0].accuracy_last is not None
    assert f" fedavg      {100 * comparison.rows[0].accuracy_last.mean:.2f}" in repr(comparison)
    for shown, tag in ((result, "<b>"), (comparison, "<i>")):
        assert tag not in shown._repr_html_()
        assert "<script" not in shown._repr_html_()
        assert "<table>" in shown._repr_html_()


def test_what_is_no_experiment_is_refused() -> None:
    with pytest.raises(ConfigError, match="an experiment is a file, a preset, a run folder or a mapping, not int"):
        fedfuse.run(3)  # type: ignore[arg-type]


def test_lists_name_what_commands_list() -> None:
    assert fedfuse.list_methods()["feddf"] is METHODS["feddf"]
    assert fedfuse.list_datasets()["digits"].at_hand == "yes"
    assert fedfuse.list_models()["mlp"].parameters == 3 * 32 * 32 * 64 + 64 + 64 * 10 + 10
    assert fedfuse.list_models()["own"].parameters is None
    assert fedfuse.list_presets()["digits"].startswith("Handwritten digits")
