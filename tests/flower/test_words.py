"""Absent, late and refused are three things, each with its own word, event and field; a quorum counts none of them."""

from __future__ import annotations

import logging

import pytest
from flwr.app import Error, Message, MessageType

from fedfuse.federation.engine import QuorumError
from fedfuse.flower import roster
from fedfuse.flower.server import run_on
from tests.flower.federation import QUICK, flower_config, grid_for
from tests.flower.grid import Node
from tests.helpers import events_of

pytestmark = pytest.mark.usefixtures("without_pictures")
ONE_ROUND = {"rounds": 1}


def when_training(node, bend):
    node.bend = lambda reply: bend(reply) if reply.metadata.message_type == MessageType.TRAIN else [reply]


def not_finite(reply):
    array = reply.content["arrays"]
    for name in array:
        array[name] = type(array[name])(array[name].numpy() * float("nan"))
    return [reply]


def as_reply(node, code):
    """An error in the place of what the node answers."""

    def bend(reply):
        failed = Message(Error(code, "/home/party/secret.csv is not there"), reply_to=node.messages[-1])
        failed.metadata.__dict__["_reply_to_message_id"] = reply.metadata.reply_to_message_id
        return [failed]

    when_training(node, bend)


def test_each_has_its_own_word_event_and_field(tmp_path, caplog):
    config = flower_config(federation={"rounds": 2}, engine={**QUICK, "quorum": 0.25})
    grid = grid_for(config, tmp_path)
    del grid.nodes[100]
    when_training(grid.nodes[99], lambda _: [])
    when_training(grid.nodes[98], not_finite)
    logger = logging.getLogger("flwr")
    logger.addHandler(caplog.handler)
    with caplog.at_level(logging.INFO, "flwr"):
        result = run_on(grid, config, tmp_path / "run")
    logger.removeHandler(caplog.handler)
    for record in result.history:
        assert (record.absent, record.late, record.refused, record.heard) == ((0,), (1,), (2,), {3})
    for kind, client in (("client_absent", 0), ("client_late", 1), ("update_refused", 2)):
        assert [event["client"] for event in events_of(tmp_path / "run", kind)] == [client, client]
    counts = ("updates_counted", "clients_absent", "clients_late", "updates_refused", "clients_screened")
    assert [result.summary[name] for name in counts] == [2, 2, 2, 2, 0]
    size = result.summary["prototypes"]["mlp"]["parameters"] * 4
    assert [record.bytes_down for record in result.history] == [3 * size, 3 * size], "an absent one was sent nothing"
    assert "round 1: client 0 is absent: no node said within 0.05 s that it is this client" in caplog.text
    assert "round 1, absent (0,), late (1,), refused (2,), accuracy" in caplog.text


@pytest.mark.parametrize("quorum", [0.5, 0.75, 1.0])
def test_a_quorum_counts_what_passed_inspection(tmp_path, quorum):
    """Two answer and are sound, two answer and are not: before the inspection there were four."""
    config = flower_config(federation=ONE_ROUND, engine={**QUICK, "quorum": quorum})
    grid = grid_for(config, tmp_path)
    for node in (100, 99):
        when_training(grid.nodes[node], not_finite)
    if quorum <= 0.5:
        assert run_on(grid, config, tmp_path / "run").history[0].refused == (0, 1)
        return
    with pytest.raises(QuorumError, match=r"round 1: 2 of 4 updates count \(2 refused\)"):
        run_on(grid, config, tmp_path / "run")
    for node in (100, 99):
        grid.nodes[node].bend = lambda reply: [reply]
    result = run_on(grid, config, tmp_path / "run")
    assert (result.history[0].refused, len(result.history)) == ((), 1), "the run can go on once they are well"


@pytest.mark.parametrize(("code", "word"), [(0, "refused"), (2, "refused"), (3, "late"), (4, "late"), (5, "late")])
def test_an_error_is_told_by_its_code_and_in_our_words(tmp_path, code, word):
    config = flower_config(federation=ONE_ROUND)
    grid = grid_for(config, tmp_path)
    as_reply(grid.nodes[98], code)
    result = run_on(grid, config, tmp_path / "run")
    assert getattr(result.history[0], word) == (2,)
    assert "secret" not in (tmp_path / "run" / "events.jsonl").read_text()


def test_a_model_whose_parties_never_came_is_said_to_be_untaught(tmp_path):
    models = {name: {"arch": "mlp", "hidden": [width]} for name, width in (("near", 4), ("far", 6))}
    config = flower_config(models=models, federation={"rounds": 2})
    grid = grid_for(config, tmp_path)
    del grid.nodes[98], grid.nodes[97]
    result = run_on(grid, config, tmp_path / "run")
    assert result.summary["untaught"] == ["far"]
    sentence = "model far was never taught: its final weights are those of the start"
    assert events_of(tmp_path / "run", "run_finished")[0]["doubts"] == [sentence]
    assert [record.prototypes["far"].untaught for record in result.history] == [True, True]
    assert not any(record.prototypes["near"].untaught for record in result.history)


class TestSeats:
    """Everybody is there when strangers come."""

    def claiming(self, tmp_path, nodes, rounds=3):
        config = flower_config(federation={"rounds": rounds})
        grid = grid_for(config, tmp_path)
        push = grid.push_messages

        def come(messages):
            if any(message.metadata.message_type == MessageType.TRAIN for message in messages):
                for number in range(nodes):
                    grid.nodes.setdefault(1000 + number, Node(grid.nodes[98].app, {"client": 2}, {}))
            return push(messages)

        grid.push_messages = come
        return run_on(grid, config, tmp_path / "run")

    def test_a_claim_to_anothers_seat_is_told_once_for_each_node(self, tmp_path):
        result = self.claiming(tmp_path, 2)
        told = events_of(tmp_path / "run", "seat_claimed")
        assert sorted((event["client"], event["node"]) for event in told) == [(2, 1000), (2, 1001)]
        assert {event["holder"] for event in told} == {98}
        assert all(record.heard == {0, 1, 2, 3} for record in result.history)

    def test_many_claims_do_not_fill_the_log(self, tmp_path, monkeypatch):
        monkeypatch.setattr(roster, "CLAIMS", 5)
        self.claiming(tmp_path, 9)
        assert len(events_of(tmp_path / "run", "seat_claimed")) == 5
