"""A party that comes late and brings a model of its own takes part from the next round on, also after a restart."""

from __future__ import annotations

import pytest
from flwr.app import MessageType

from fedfuse.experiment.config import read_yaml
from fedfuse.experiment.run import Experiment
from fedfuse.federation.folder import RunFolder
from fedfuse.flower.server import run_on
from tests.flower.federation import CrashError, crash_in, flower_config, grid_for, history
from tests.helpers import events_of, files_of

pytestmark = pytest.mark.usefixtures("without_pictures")
MODELS = {name: {"arch": "mlp", "hidden": [width, 5]} for name, width in [("a", 4), ("b", 6)]}
LATE = 98
"""The node of client 2, for whom model b is planned."""


def config_of(method="feddf", rounds=4):
    return flower_config(method, models=MODELS, federation={"rounds": rounds})


def grid_with_a_latecomer(config, folder, prototype="a", joins_in=2):
    """Its node is there as soon as the tasks of a round are sent."""
    grid = grid_for(config, folder)
    late, push = grid.nodes.pop(LATE), grid.push_messages
    late.context.node_config["prototype"] = prototype

    def join(messages):
        if any(message.content["config"].get("server-round", 0) >= joins_in for message in messages):
            grid.nodes[LATE] = late
        return push(messages)

    grid.push_messages = join
    return grid


def test_it_takes_part_with_its_own_model_from_the_next_round_on(tmp_path):
    config = config_of()
    grid = grid_with_a_latecomer(config, tmp_path)
    result = run_on(grid, config, tmp_path / "run")
    assert [record.absent for record in result.history] == [(2,), (2,), (), ()]
    assert [record.joined for record in result.history] == [{}, {}, {2: "a"}, {}]
    told = [(e["round"], e["client"], e["prototype"]) for e in events_of(tmp_path / "run", "client_joined")]
    assert told == [(3, 2, "a")]
    finished = [e["prototype"] for e in events_of(tmp_path / "run", "client_finished") if e["client"] == 2]
    assert finished == ["a", "a"]
    assert result.summary["joined"] == {"2": "a"}


@pytest.mark.parametrize("method", ["feddf", "scaffold", "fd"])
@pytest.mark.parametrize("crash", [3, 4])
def test_a_restart_knows_it(tmp_path, method, crash):
    """Before the round in which it joins is finished, and after."""
    config = config_of(method)
    (tmp_path / "straight").mkdir()
    straight = run_on(grid_with_a_latecomer(config, tmp_path / "straight"), config, tmp_path / "straight" / "run")
    grid = grid_with_a_latecomer(config, tmp_path)
    crash_in(grid, crash)
    with pytest.raises(CrashError):
        run_on(grid, config, tmp_path / "run")
    result = run_on(grid, config, tmp_path / "run")
    assert history(result) == history(straight)
    assert files_of(result.folder.final) == files_of(straight.folder.final)


def test_once_it_was_heard_its_model_stays(tmp_path):
    config = config_of()
    grid = grid_with_a_latecomer(config, tmp_path)
    crash_in(grid, 4)
    with pytest.raises(CrashError):
        run_on(grid, config, tmp_path / "run")
    grid.nodes[LATE].context.node_config["prototype"] = "b"
    result = run_on(grid, config, tmp_path / "run")
    assert [record.absent for record in result.history] == [(2,), (2,), (), (2,)]
    assert "runs another model than 'a'" in events_of(tmp_path / "run", "client_absent")[-1]["reason"]


def test_a_model_that_the_experiment_has_not_leaves_it_absent(tmp_path):
    config = config_of(rounds=3)
    grid = grid_for(config, tmp_path)

    def boast(reply):
        if reply.metadata.message_type == MessageType.QUERY:
            reply.content["config"]["prototype"] = "gigantic"
        return [reply]

    grid.nodes[LATE].bend = boast
    result = run_on(grid, config, tmp_path / "run")
    assert [record.absent for record in result.history] == [(2,)] * 3
    assert not events_of(tmp_path / "run", "client_joined")
    assert "gigantic" not in (tmp_path / "run" / "events.jsonl").read_text()


def test_what_it_came_to_can_be_run_locally(tmp_path):
    """With the models that were finally assigned, from the first round on."""
    config = config_of()
    result = run_on(grid_with_a_latecomer(config, tmp_path), config, tmp_path / "run")
    raw = read_yaml(RunFolder(tmp_path / "run").config)
    names = list(raw["federation"]["assigned"]) or ["a", "a", "b", "b"]
    for client, name in result.summary["joined"].items():
        names[int(client)] = name
    federation = {**raw["federation"], "shares": {}, "assigned": names}
    local = Experiment({**raw, "federation": federation, "engine": {"kind": "local"}}).run(tmp_path / "local")
    assert all(record.heard == {0, 1, 2, 3} for record in local.history)
    assert {e["client"]: e["prototype"] for e in events_of(tmp_path / "local", "client_finished")}[2] == "a"
