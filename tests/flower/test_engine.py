"""Which node plays which client, and what happens when one lies, is late or goes away."""

from __future__ import annotations

import pytest
from flwr.app import MessageType

from fedfuse.core.errors import ConfigError
from fedfuse.experiment.run import Experiment
from fedfuse.federation.engine import QuorumError
from fedfuse.flower.server import run_on
from tests.flower.federation import (
    QUICK,
    ROUNDS,
    CrashError,
    assert_same,
    crash_in,
    flower_config,
    grid_for,
    local_config,
)
from tests.helpers import events_of, files_of

pytestmark = pytest.mark.usefixtures("without_pictures")
THREE_MODELS = {name: {"arch": "mlp", "hidden": [width, 5]} for name, width in [("a", 4), ("b", 6), ("c", 9)]}


class TestModels:
    def test_nodes_choose_their_own(self, tmp_path):
        chosen = ["c", "a", "a", "b"]
        config = flower_config("feddf", models=THREE_MODELS)
        grid = grid_for(config, tmp_path)
        for client, name in enumerate(chosen):
            grid.nodes[100 - client].context.node_config["prototype"] = name
        flower = run_on(grid, config, tmp_path / "flower")
        assigned = local_config("feddf", models=THREE_MODELS, federation={**ROUNDS, "assigned": chosen})
        assert_same(flower, Experiment(assigned).run(tmp_path / "local"), tmp_path / "nodes")
        assert set(files_of(flower.folder.final)) == {f"{name}.safetensors" for name in THREE_MODELS}

    def test_a_resumed_server_remembers_those_of_absent_nodes(self, tmp_path):
        config = flower_config("feddf", models=THREE_MODELS, federation={"rounds": 2})
        grid = grid_for(config, tmp_path)
        for node, name in zip(grid.nodes.values(), "cbaa", strict=True):
            node.context.node_config["prototype"] = name
        crash_in(grid, 2)
        with pytest.raises(CrashError):
            run_on(grid, config, tmp_path / "flower")
        del grid.nodes[100]
        result = run_on(grid, config, tmp_path / "flower")
        assert [record.absent for record in result.history] == [(), (0,)]

    def test_one_that_changed_its_mind_is_left_out_and_the_others_go_on(self, tmp_path):
        config = flower_config("feddf", models=THREE_MODELS, federation={"rounds": 2})
        grid = grid_for(config, tmp_path)
        crash_in(grid, 2)
        with pytest.raises(CrashError):
            run_on(grid, config, tmp_path / "flower")
        grid.nodes[100].context.node_config["prototype"] = "c"
        result = run_on(grid, config, tmp_path / "flower")
        assert [record.absent for record in result.history] == [(), (0,)]
        (event,) = events_of(tmp_path / "flower", "client_absent")
        assert event["reason"] == "its node runs another model than 'a', which the run has for this client"

    def test_unknown_ones_are_not_seated(self, tmp_path):
        config = flower_config(federation={"rounds": 1})
        grid = grid_for(config, tmp_path, prototype="mpl")
        with pytest.raises(QuorumError, match=r"round 1: 0 of 4 updates count \(4 absent\)"):
            run_on(grid, config, tmp_path / "flower")

    def test_a_strangers_word_for_one_that_does_not_exist_costs_itself_only(self, tmp_path):
        config = flower_config(federation={"rounds": 1})
        grid = grid_for(config, tmp_path)

        def boast(reply):
            if reply.metadata.message_type == MessageType.QUERY:
                reply.content["config"]["prototype"] = "gigantic"
            return [reply]

        grid.nodes[98].bend = boast
        assert run_on(grid, config, tmp_path / "flower").history[0].absent == (2,)

    @pytest.mark.parametrize(
        ("federation", "reason"),
        [
            ({"assigned": ["a", "b"]}, "names 2 models for 4 clients"),
            ({"assigned": ["a", "b", "c", "d"]}, "unknown model 'd'"),
            ({"assigned": ["a"] * 4, "shares": {"a": 1}}, "keep one of them"),
        ],
    )
    def test_assigned_must_fit(self, tmp_path, federation, reason):
        with pytest.raises(ConfigError, match=reason):
            Experiment(local_config("feddf", models=THREE_MODELS, federation=federation)).run(tmp_path / "run")


def quick_with(**changes):
    return {**QUICK, **changes}


class TestBadAnswers:
    """What one node does wrong costs its own answer only."""

    def run(self, tmp_path, bend, **engine):
        config = flower_config(federation={"rounds": 2}, engine=quick_with(**engine))
        grid = grid_for(config, tmp_path)
        grid.nodes[98].bend = lambda reply: bend(reply) if reply.metadata.message_type == MessageType.TRAIN else [reply]
        return run_on(grid, config, tmp_path / "flower")

    def test_twice_counts_once(self, tmp_path):
        result = self.run(tmp_path, lambda reply: [reply, reply])
        assert_same(result, Experiment(local_config(federation={"rounds": 2})).run(tmp_path / "local"), tmp_path)

    @pytest.mark.parametrize(
        ("record", "key", "value"),
        [
            ("config", "client", 0),
            ("config", "server-round", 7),
            ("config", "prototype", "other"),
            ("metrics", "num-examples", 0),
            ("metrics", "num-examples", 10**15),
        ],
    )
    def test_a_lie_is_refused(self, tmp_path, record, key, value):
        def bend(reply):
            reply.content[record][key] = value
            return [reply]

        result = self.run(tmp_path, bend)
        assert [one.refused for one in result.history] == [(2,), (2,)]

    def test_no_answer_ends_the_round_at_the_deadline(self, tmp_path):
        result = self.run(tmp_path, lambda _: [], quorum=0.75)
        assert [one.late for one in result.history] == [(2,), (2,)]
        assert [one.refused for one in result.history] == [(), ()]

    def test_too_few_answers_stop_the_run_and_it_can_go_on(self, tmp_path):
        config = flower_config("scaffold", federation={"rounds": 3}, engine=quick_with(quorum=1.0))
        grid = grid_for(config, tmp_path)
        lost = grid.nodes[98]
        lost.bend = lambda reply: [] if lost.messages[-1].content["config"].get("server-round") == 2 else [reply]
        with pytest.raises(QuorumError, match=r"round 2: 3 of 4 updates count \(1 late\), engine.quorum asks for 100%"):
            run_on(grid, config, tmp_path / "flower")
        lost.bend = lambda reply: [reply]
        result = run_on(grid, config, tmp_path / "flower")
        local = Experiment(local_config("scaffold", federation={"rounds": 3})).run(tmp_path / "local")
        assert_same(result, local, tmp_path / "nodes")


class TestNodes:
    def test_a_lost_state_is_no_new_beginning(self, tmp_path):
        config = flower_config("scaffold", federation={"rounds": 2})
        grid = grid_for(config, tmp_path)
        crash_in(grid, 2)
        with pytest.raises(CrashError):
            run_on(grid, config, tmp_path / "flower")
        for file in (tmp_path / "nodes").rglob("client-2/*"):
            file.unlink()
        result = run_on(grid, config, tmp_path / "flower")
        assert [one.refused for one in result.history] == [(), (2,)]

    def test_two_nodes_cannot_be_one_client(self, tmp_path):
        config = flower_config(federation={"rounds": 1})
        grid = grid_for(config, tmp_path)
        grid.nodes[7] = grid.nodes.pop(98)
        grid.nodes[7].context.node_config["client"] = 0
        result = run_on(grid, config, tmp_path / "flower")
        assert result.history[0].absent == (2,)

    def test_a_node_that_comes_back_under_another_id_goes_on(self, tmp_path):
        config = flower_config("scaffold", federation={"rounds": 2})
        grid = grid_for(config, tmp_path)
        crash_in(grid, 2)
        with pytest.raises(CrashError):
            run_on(grid, config, tmp_path / "flower")
        grid.nodes[7] = grid.nodes.pop(98)
        local = Experiment(local_config("scaffold", federation={"rounds": 2})).run(tmp_path / "local")
        assert_same(run_on(grid, config, tmp_path / "flower"), local, tmp_path / "nodes")

    def test_one_that_joins_after_the_time_to_wait_takes_part_from_the_next_round_on(self, tmp_path):
        config = flower_config("scaffold", federation={"rounds": 3})
        grid = grid_for(config, tmp_path)
        late, push = grid.nodes.pop(98), grid.push_messages

        def join(messages):
            if any(message.content["config"].get("server-round") == 2 for message in messages):
                grid.nodes[98] = late
            return push(messages)

        grid.push_messages = join
        result = run_on(grid, config, tmp_path / "flower")
        assert [one.absent for one in result.history] == [(2,), (2,), ()]
        assert not events_of(tmp_path / "flower", "client_joined"), "its model is the one that was planned"

    def test_states_do_not_pile_up(self, tmp_path):
        config = flower_config("scaffold", federation={"rounds": 8})
        run_on(grid_for(config, tmp_path), config, tmp_path / "flower")
        kept = [file.name for file in sorted((tmp_path / "nodes").rglob("client-2/*"))]
        assert kept == [f"round-{number:06d}.safetensors" for number in (5, 6, 7, 8)]
