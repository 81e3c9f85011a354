"""Runs that lie in folders, finished or not, damaged or not: what was measured is read, and nothing is changed."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from benchmarks.report.runs import Made, write_run

import fedfuse
from fedfuse.core.errors import ConfigError, RunFolderError
from fedfuse.experiment.looking import folders
from fedfuse.experiment.looking.folders import run_folders
from fedfuse.federation.folder import RunFolder
from fedfuse.federation.lock import acquire
from tests.experiment.test_resume import StopAt
from tests.helpers import tiny_config, tiny_method

pytestmark = pytest.mark.usefixtures("without_pictures")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_what_compare_returned_is_read_again_with_all_its_numbers(tmp_path: Path) -> None:
    raw = tiny_config().model_dump(mode="json")
    made = fedfuse.compare(
        {**raw, "models": {"small": {"arch": "mlp", "hidden": [5]}, "wide": {"arch": "mlp"}}},
        [tiny_method("fedavg"), tiny_method("feddf"), tiny_method("1-ensemble"), tiny_method("local-only")],
        [0, 1],
        out=tmp_path / "runs",
        evaluation={"target_accuracy": 0.3, "metrics": ["macro_f1", "per_class_accuracy"]},
    )
    before = contents(tmp_path)
    read = fedfuse.load_runs(tmp_path / "runs")
    by_name = {(row.method, row.prototype): row for row in read.rows}
    assert by_name == {(row.method, row.prototype): row for row in made.rows}
    assert len(by_name) == 7
    assert read.target == made.target
    assert read.remarks == read.unreadable == read.unfinished == ()
    assert sorted(map(str, read.records())) == sorted(map(str, made.records()))
    assert contents(tmp_path) == before


def test_any_folder_above_runs_will_do_and_each_run_counts_once(tmp_path: Path) -> None:
    for seed in (0, 1, 2, 10):
        write_run(tmp_path / "study" / "deep" / f"fedavg-seed{seed}", Made(seed=seed))
    write_run(tmp_path / "other" / "feddf", Made("feddf"))
    (row, other) = fedfuse.load_runs(tmp_path / "study", tmp_path, tmp_path / "study" / "deep" / "fedavg-seed0").rows
    assert row.seeds == (0, 1, 2, 10)
    assert (other.method, other.seeds) == ("feddf", (0,))


def test_numbers_in_names_count_as_numbers(tmp_path: Path) -> None:
    for name in ("seed10", "seed2", "seed1", "seed99999999999999999999"):
        write_run(tmp_path / name, Made())
    found = [folder.path.name for folder in run_folders([tmp_path])]
    assert found[:3] == ["seed1", "seed2", "seed10"]


@pytest.mark.parametrize("place", ["none", "a.txt"])
def test_what_is_no_folder_is_refused_in_one_sentence(tmp_path: Path, place: str) -> None:
    (tmp_path / "a.txt").write_text("text")
    with pytest.raises(ConfigError, match=r"(does not exist|is a file); give the folder of a run"):
        fedfuse.load_runs(tmp_path / place)


def test_a_folder_without_runs_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("name: mine")  # an experiment, and no run
    with pytest.raises(RunFolderError, match="holds no run; give a folder that fedfuse run"):
        fedfuse.load_runs(tmp_path)


def test_links_are_not_followed_and_the_search_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path / "runs" / "one", Made())
    (tmp_path / "runs" / "again").symlink_to(tmp_path / "runs", target_is_directory=True)
    assert len(run_folders([tmp_path])) == 1
    assert len(run_folders([tmp_path / "runs" / "again"])) == 1  # but one that was named is
    monkeypatch.setattr(folders, "MOST", 3)
    for number in range(5):
        (tmp_path / f"file{number}").touch()
    with pytest.raises(RunFolderError, match="holds more than 3 files and folders; give a folder nearer to the runs"):
        run_folders([tmp_path])


def damaged_log(folder: Path) -> None:
    log = folder / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"accuracy": 0', b'"accuracy": 1', 1))


def absurd_log(folder: Path) -> None:
    """Of an unfinished run, whose log nothing vouches for."""
    (folder / "summary.json").unlink()
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    for event in lines:
        if event["event"] == "round_finished":
            event["prototypes"]["mlp"]["accuracy"] = "<script>"
    (folder / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in lines))


def pipe_for_a_log(folder: Path) -> None:
    (folder / "events.jsonl").unlink()
    os.mkfifo(folder / "events.jsonl")


def folder_for_a_summary(folder: Path) -> None:
    (folder / "summary.json").unlink()
    (folder / "summary.json").mkdir()


DAMAGES = {
    "a log that was edited": (damaged_log, "is not as the run left it"),
    "a log that cannot be true": (absurd_log, "the record of a round cannot be true"),
    "no log": (lambda folder: (folder / "events.jsonl").unlink(), "is not as the run left it"),
    "a summary of garbage": (lambda folder: (folder / "summary.json").write_text("{x"), "is damaged"),
    "an empty summary": (lambda folder: (folder / "summary.json").write_text("{}"), "is damaged"),
    "a config of garbage": (lambda folder: (folder / "config.yaml").write_bytes(b"\xff"), "UTF-8"),
    "a config that is no mapping": (lambda folder: (folder / "config.yaml").write_text("- x"), "should be a mapping"),
    "a pipe for a log": (pipe_for_a_log, "is not a file"),
    "a folder for a summary": (folder_for_a_summary, "is not a file"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_folder_is_a_sentence_and_the_others_are_shown(tmp_path: Path, name: str) -> None:
    damage, words = DAMAGES[name]
    write_run(tmp_path / "sound", Made())
    write_run(tmp_path / "damaged", Made("feddf"))
    damage(tmp_path / "damaged")
    found = fedfuse.load_runs(tmp_path)
    assert [row.method for row in found.rows] == ["fedavg"]
    (sentence,) = found.unreadable
    assert words in sentence
    assert "\n" not in sentence
    assert "damaged" in sentence
    with pytest.raises(RunFolderError, match=words):
        fedfuse.load_runs(tmp_path / "damaged")


def test_what_is_beside_the_numbers_may_be_damaged(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", Made())
    folder.partition.write_text("{")
    folder.confusion.write_text("[1")
    (run,) = fedfuse.load_runs(tmp_path).runs
    assert run.partition is None
    assert run.confusions == {}
    assert "92" not in run.class_names(3)
    assert fedfuse.load_runs(tmp_path).describe()


def test_what_a_summary_says_beside_the_log_is_not_believed(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", Made())
    honest = fedfuse.load_runs(tmp_path).rows
    summary = json.loads(folder.summary.read_text())
    lies = {"bytes_up": "<b>", "updates_refused": [1], "data": "none", "untaught": {"a": 1}, "target_accuracy": "high"}
    summary["prototypes"]["mlp"] |= {"accuracy_best": 7, "rounds_to_target": "soon", "parameters": -1, "metrics": 3}
    folder.summary.write_text(json.dumps({**summary, **lies, "method": "fed\x1b[2Javg\n"}))
    (row,) = fedfuse.load_runs(tmp_path).rows
    assert row.accuracy_best == honest[0].accuracy_best
    assert row.bytes_up == honest[0].bytes_up
    assert row.parameters is None
    assert row.method == "fed [2Javg "
    assert "\x1b" not in fedfuse.load_runs(tmp_path).describe()


def test_an_unfinished_run_is_read_as_far_as_its_log_goes_without_checkpoints_or_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_net_of_looking.py").write_text(
        "from torch import nn\nnet = lambda: nn.Sequential(nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, 3))\n"
        "def build():\n    return net()\n"
    )
    monkeypatch.chdir(tmp_path)
    models = {"mine": {"arch": "own", "callable": "my_net_of_looking:build"}}
    config = tiny_config(models=models, federation={"rounds": 3})
    with pytest.raises(KeyboardInterrupt):
        fedfuse.Experiment(config).run(tmp_path / "run", listeners=(StopAt("round_started", 3),))
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    sys.modules.pop("my_net_of_looking")
    found = fedfuse.load_runs(tmp_path / "run")
    assert "my_net_of_looking" not in sys.modules
    (row,) = found.rows
    assert not row.is_finished
    assert row.rounds == (2,)
    assert found.unfinished == ("experiment fedavg seed 0",)
    assert "not finished (round 2 of 3)" in found.remarks[0]
    assert f"fedfuse run {tmp_path / 'run'} --resume  # needs my_net_of_looking:build" in found.describe(400)


def test_a_run_that_is_being_written_is_called_running_and_is_not_disturbed(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", Made(rounds=2, planned=5))
    with folder.events.open("ab") as log:
        log.write(b'{"event": "round_finished", "round": 3, "half')
    (run,) = fedfuse.load_runs(tmp_path).runs
    assert (run.state, run.rounds, run.planned) == ("unfinished", 2, 5)
    descriptor = acquire(folder.path / ".lock")
    try:
        (run,) = fedfuse.load_runs(tmp_path).runs
        assert run.state == ("running" if Path("/proc/locks").exists() else "unfinished")
    finally:
        os.close(descriptor)
    os.close(acquire(folder.path / ".lock"))  # nobody who looked has kept it
    assert fedfuse.load_runs(tmp_path).runs[0].state == "unfinished"


def test_a_run_of_an_earlier_version_shows_what_it_has(tmp_path: Path) -> None:
    """Without a table of classes, names of classes, keys of today, and a mark in its log."""
    folder = write_run(tmp_path / "run", Made())
    folder.confusion.unlink()
    lines = folder.events.read_text().splitlines()
    last = {key: value for key, value in json.loads(lines[-1]).items() if key != "log"}
    folder.events.write_text("\n".join([*lines[:-1], json.dumps(last)]) + "\n")
    config = folder.config.read_text()
    folder.config.write_text("\n".join(line for line in config.splitlines() if "checkpoint_every" not in line))
    write_run(tmp_path / "now", Made(seed=1))
    (row,) = fedfuse.load_runs(tmp_path).rows
    assert row.seeds == (0, 1)


def test_without_a_place_it_is_the_folder_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="runs does not exist"):
        fedfuse.load_runs()
    write_run(Path("runs") / "one", Made())
    found = fedfuse.load_runs()
    assert found.folder == Path("runs")
    assert len(found.rows) == 1
    assert not RunFolder(Path("runs/one")).checkpoints.exists()
