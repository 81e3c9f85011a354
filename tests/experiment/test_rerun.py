"""A cell that is run again: this very run is read or gone on with, any other one is left alone."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

import fedfuse
from fedfuse.core.errors import ConfigError, RunFolderError, StopRun
from fedfuse.experiment.live import listeners
from tests.experiment.test_api import TINY, files_of, finals


class StopAfter:
    """A listener that has enough after some round."""

    def __init__(self, number: int, event: str = "round_finished") -> None:
        self.number, self.event = number, event
        self.heard: list[str] = []

    def __call__(self, event: Any) -> None:
        self.heard.append(event["event"])
        if self.heard.count(self.event) == self.number and event.get("what") != "load data":
            raise StopRun("good enough")


def test_a_finished_run_is_read_with_a_line_and_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = fedfuse.run(TINY, out=tmp_path)
    assert capsys.readouterr() == ("", "")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    again = fedfuse.run(TINY, out=tmp_path)
    assert again == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    assert "already finished: nothing was run" in capsys.readouterr().err


def test_a_run_folder_that_is_given_is_read_and_a_changed_one_is_another_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = fedfuse.run(TINY, out="mine")
    assert fedfuse.run("mine").folder.path == Path("mine")
    assert fedfuse.run("mine", engine={"workers": 1}).folder.path == Path("mine")
    assert fedfuse.run("mine", seed=3).folder.path != Path("mine")
    assert fedfuse.run("mine") == first


def test_overwrite_runs_it_anew_and_another_experiment_is_refused_in_python(tmp_path: Path) -> None:
    fedfuse.run(TINY, out=tmp_path)
    with pytest.raises(RunFolderError, match=r"another out=, or replace it with overwrite=True$"):
        fedfuse.run(TINY, seed=1, out=tmp_path)
    assert fedfuse.run(TINY, seed=1, out=tmp_path, overwrite=True).summary["seed"] == 1


def test_who_overwrites_a_run_like_another_says_which_one(tmp_path: Path) -> None:
    fedfuse.run(TINY, out=tmp_path / "mine")
    with pytest.raises(ConfigError, match=r"a run like .*mine: say with out= which folder shall be replaced"):
        fedfuse.run(tmp_path / "mine", overwrite=True)
    assert fedfuse.run(tmp_path / "mine", overwrite=True, out=tmp_path / "mine").folder.path == tmp_path / "mine"


def test_a_folder_that_holds_runs_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is no run folder; give a file, a preset or the folder of a run"):
        fedfuse.run(tmp_path)


@pytest.mark.parametrize("event", ["round_finished", "round_started", "client_finished"])
def test_a_listener_stops_a_run_after_its_round_and_the_next_call_goes_on(tmp_path: Path, event: str) -> None:
    whole, rounds = fedfuse.run(TINY, federation={"rounds": 3}, out=tmp_path / "whole"), {"rounds": 3}
    stop = StopAfter(2, event)
    stopped = fedfuse.run(TINY, federation=rounds, out=tmp_path / "run", progress=stop)
    assert stopped.stopped == "good enough"
    assert not stopped.is_finished
    assert stopped.summary["rounds"] == (1 if event == "client_finished" else 2)
    assert "stopped (good enough)" in repr(stopped)
    assert "stopped (good enough)" in stopped._repr_html_()
    assert stop.heard[-1] == "run_stopped"
    result = fedfuse.run(TINY, federation=rounds, out=tmp_path / "run")
    assert result.is_finished
    assert not result.stopped
    assert finals(tmp_path / "run") == finals(tmp_path / "whole")
    assert result.accuracy == whole.accuracy


def test_a_stopped_run_ends_there_for_good_if_no_more_rounds_are_wanted(tmp_path: Path) -> None:
    fedfuse.run(TINY, federation={"rounds": 3}, out=tmp_path / "run", progress=StopAfter(2))
    with pytest.raises(RunFolderError, match="already holds a run; add resume=True"):
        fedfuse.run(TINY, federation={"rounds": 2}, out=tmp_path / "run")
    ended = fedfuse.run(TINY, federation={"rounds": 2}, out=tmp_path / "run", resume=True)
    assert ended.is_finished
    fedfuse.run(TINY, federation={"rounds": 2}, out=tmp_path / "two")
    assert finals(tmp_path / "run") == finals(tmp_path / "two")


def test_a_stopped_sweep_has_what_was_tried_and_goes_on(tmp_path: Path) -> None:
    def stop(event: Any) -> None:
        if event["event"] == "trial_ended":
            raise StopRun("one is enough")

    sweep = partial(fedfuse.sweep, TINY, {"training.batch_size": [4, 8]}, out=tmp_path)
    assert len(sweep(progress=stop).trials) == 1
    assert len(sweep(progress=StopAfter(1)).trials) == 1
    assert len(sweep().trials) == 2


def test_who_stops_in_the_last_round_has_a_finished_run_and_all_listeners_hear_everything(tmp_path: Path) -> None:
    heard: list[str] = []
    experiment = fedfuse.Experiment.load(TINY)
    last = experiment.config.federation.rounds
    result = experiment.run(tmp_path, listeners=(StopAfter(last), lambda event: heard.append(event["event"])))
    assert result.is_finished
    assert heard.count("round_finished") == last
    assert heard[-1] == "run_finished"


def test_who_stops_before_the_first_round_hears_of_it_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(StopRun, match="good enough"):
        fedfuse.run(TINY, out=tmp_path / "run", progress=StopAfter(1, "run_started"))
    assert fedfuse.run(TINY, out=tmp_path / "run").is_finished


def test_a_stopped_comparison_has_what_was_finished_and_goes_on(tmp_path: Path) -> None:
    def stop(event: Any) -> None:
        if event["event"] == "round_finished" and "seed 1" in event["run"]:
            raise StopRun("enough seeds")

    planned = {"methods": "fedavg", "seeds": [0, 1, 2], "out": tmp_path, "federation": {"rounds": 2}}
    some = fedfuse.compare(TINY, **planned, progress=stop)
    assert [row.seeds for row in some.rows] == [(0,)]
    assert len(some.unfinished) == 2
    before = files_of(next(tmp_path.glob("*seed0")))
    assert [row.seeds for row in fedfuse.compare(TINY, **planned).rows] == [(0, 1, 2)]
    assert files_of(next(tmp_path.glob("*seed0"))) == before


def test_programs_are_quiet_and_sessions_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    round_finished = {"event": "round_finished", "round": 1, "prototypes": {}, "ensemble_accuracy": 0.5}
    said: list[str] = []
    for is_typed in (False, True):
        if is_typed:
            monkeypatch.setattr("sys.ps1", ">>> ", raising=False)
        (listener,) = listeners("auto", "mine")
        monkeypatch.setattr(listener, "say", said.append)
        listener(round_finished)
    assert said == ["mine: round 1/0 ensemble 50.0 %"]
    assert listeners(False) == ()
