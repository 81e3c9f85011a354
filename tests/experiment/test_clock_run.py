"""The clock in whole runs: no bit changes without need, any resume tells the same time."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedfuse.core.errors import ConfigError, RunFolderError
from fedfuse.experiment.run import Experiment
from fedfuse.experiment.sheets import closing_facts, summary_sheet
from fedfuse.federation.summary import SIMULATED
from tests.helpers import files_of, tiny_config

pytestmark = pytest.mark.usefixtures("without_pictures")

TRACE = "speed,down,up,present\n3e5,2e3,1e3,0-1.5 3-40\n9e5,8e3,4e3,0-5 20-40\n1e4,9e2,9e2,10-40\n"
HARD = {"trace": "devices.csv", "period": 40.0, "deadline": 4.0, "invite": 1.4, "server": {"speed": 1e6}}
"""A clock with everything that can happen to a client."""


@pytest.fixture(autouse=True)
def trace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "devices.csv"
    path.write_text(TRACE)
    return path


def experiment(method="scaffold", clock=None, rounds=4, checkpoint_every=1, **sections):
    federation = {"rounds": rounds, "participation": 0.5, "clock": clock, "checkpoint_every": checkpoint_every}
    return Experiment(tiny_config(method, federation=federation, **sections))


def test_without_deadline_and_absences_a_run_has_the_bits_that_it_has_without_a_clock(tmp_path):
    for method in ("scaffold", "feddf"):
        plain = experiment(method).run(tmp_path / method / "plain")
        timed = experiment(method, {}).run(tmp_path / method / "timed")
        assert files_of(timed.folder.final) == files_of(plain.folder.final)
        assert timed.history[-1].clock.total > 0
        assert plain.history[-1].clock is None
        assert "simulated_seconds" not in plain.summary


def test_the_clock_is_part_of_what_an_experiment_is_only_where_there_is_one():
    assert "clock" not in experiment().config.identity()["federation"]
    assert experiment().config.sha256() != experiment(clock={}).config.sha256()
    assert experiment(clock={}).config.sha256() != experiment(clock={"deadline": 3.0}).config.sha256()


def test_everything_happens(tmp_path):
    result = experiment(clock=HARD, rounds=6).run(tmp_path / "run")
    clocks = [record.clock for record in result.history]
    assert sum(len(clock.late) + len(clock.left) for clock in clocks) == result.summary["clients_late"] > 0
    assert any(clock.late for clock in clocks)
    assert all(set(record.late) == {*record.clock.late, *record.clock.left} for record in result.history)
    assert sum(len(clock.left) for clock in clocks) == result.summary["clients_left"] > 0
    assert sum(clock.absent for clock in clocks) > 0
    assert clocks[-1].total == result.summary["simulated_seconds"]
    rows = result.records()
    assert [row["clock_late"] for row in rows] == [len(clock.late) for clock in clocks]
    assert "simulated s" in closing_facts(experiment(clock=HARD), result)["clock"]


def told(result):
    return [record.clock for record in result.history], files_of(result.folder.final)


@pytest.mark.parametrize("every", [1, 3])
def test_a_resumed_run_tells_the_same_time(tmp_path, every):
    expected = experiment(clock=HARD).run(tmp_path / "straight")

    def stop(event):
        if event["event"] == "client_late" and event["round"] > 3:
            raise KeyboardInterrupt

    rare = experiment(clock=HARD, checkpoint_every=every)
    with pytest.raises(KeyboardInterrupt):
        rare.run(tmp_path / "resumed", listeners=(stop,))
    assert told(rare.run(tmp_path / "resumed", resume=True)) == told(expected)


def test_layers_of_one_model_are_asked_of_the_same_clients(tmp_path):
    """FedMA looks up who was drawn some rounds ago, when it was another time."""
    result = experiment("fedma", {**HARD, "invite": 1.0}).run(tmp_path / "run")
    first, second = result.history[:2]
    assert set(second.clients) == set(first.clients) - set(first.clock.late) - set(first.clock.left)


def test_a_trace_that_changed_is_no_trace_of_this_run(tmp_path, trace):
    def stop(event):
        if event["event"] == "round_started" and event["round"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        experiment(clock=HARD).run(tmp_path / "run", listeners=(stop,))
    trace.write_text(TRACE.replace("3e5", "4e5"))
    with pytest.raises(RunFolderError, match="begun with other contents of the device trace"):
        experiment(clock=HARD).run(tmp_path / "run", resume=True)


def test_a_wrong_trace_is_refused_before_anything_is_written(tmp_path, trace):
    trace.write_text("speed,down,up\n1,2,none\n")
    with pytest.raises(ConfigError, match=r"devices\.csv, line 2: up is 'none', but should be a number"):
        experiment(clock=HARD).run(tmp_path / "run")
    assert not (tmp_path / "run" / "config.yaml").exists()


def test_seconds_until_the_target(tmp_path):
    evaluation = {"target_accuracy": 0.4}
    result = experiment("fedavg", {}, evaluation=evaluation).run(tmp_path / "run")
    own = result.summary["prototypes"]["mlp"]
    assert own[SIMULATED] == result.history[own["rounds_to_target"] - 1].clock.total
    sheet = summary_sheet(result.summary)
    assert "simulated s to\n40 %" in sheet.headings
    never = experiment("fedavg", {}, evaluation={"target_accuracy": 1.0}).run(tmp_path / "never")
    assert never.summary["prototypes"]["mlp"][SIMULATED] is None


def test_the_example_runs(tmp_path):
    example = Path(__file__).parents[2] / "examples" / "clock.yaml"
    result = Experiment.load(example, ["federation.rounds=2", "training.epochs=1"]).run(tmp_path / "run")
    assert [len(record.clients) for record in result.history] == [8, 8]


@pytest.mark.parametrize(
    ("clock", "sentence"),
    [
        ({"devices": {"speed": 0}}, "speed reaches 0"),
        ({"devices": {"present": 2}}, "present is a share"),
        ({"devices": {"present": {"kind": "lognormal", "median": 0.5, "spread": 2}}}, "present is a share"),
        ({"devices": {"up": {"kind": "uniform", "low": 3, "high": 1}}}, "low is 3, but high is 1"),
        ({"devices": {"up": "fast"}}, "up is 'fast', but should be a number"),
        ({"trace": "devices.csv", "devices": {"up": 3}}, "keep one of them"),
        ({"deadline": 0}, "deadline is 0, but should be greater than 0"),
    ],
)
def test_what_cannot_be_is_said(clock, sentence):
    with pytest.raises(ConfigError, match=sentence):
        experiment(clock=clock)
