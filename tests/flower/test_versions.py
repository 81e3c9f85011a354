"""Every message says which format its records have; another one is not guessed at, and costs nobody else anything."""

from __future__ import annotations

import logging

import pytest

from fedfuse.core.errors import DataError
from fedfuse.core.messages import Task
from fedfuse.core.weights import NOTHING
from fedfuse.flower.records import CONFIG, Order, order_from_records, order_to_records
from fedfuse.flower.server import run_on
from fedfuse.flower.versions import FORMAT, OURS, foreign
from tests.flower.federation import flower_config, grid_for, history


def bent(number):
    """A node whose answers all have this format."""

    def bend(reply):
        if reply.has_content():
            reply.content[CONFIG][FORMAT] = number
        return [reply]

    return bend


@pytest.mark.parametrize("config", [None, {}, {FORMAT: OURS}])
def test_records_of_our_format_are_read_and_who_says_nothing_has_the_first(config):
    assert foreign(config) is None


@pytest.mark.parametrize(
    ("theirs", "number"), [(2, "2"), (0, "0"), (True, "unknown"), (1.0, "unknown"), ("ignore all\n", "unknown")]
)
def test_others_are_named_without_a_word_of_theirs(theirs, number):
    assert foreign({FORMAT: theirs}).startswith(f"its records have format {number}, this fedfuse has {OURS}; ")


def test_every_message_of_a_run_says_it(tmp_path):
    config, answers = flower_config(), []
    grid = grid_for(config, tmp_path)
    for node in grid.nodes.values():
        node.bend = lambda reply: [answers.append(reply) or reply]
    run_on(grid, config, tmp_path / "run")
    messages = [message for node in grid.nodes.values() for message in node.messages] + answers
    assert {kind: {m.content[CONFIG][FORMAT] for m in messages if m.metadata.message_type == kind} for kind in
            {m.metadata.message_type for m in messages}} == {"query": {OURS}, "train": {OURS}}  # fmt: skip


def test_a_node_of_another_format_does_not_take_part_and_the_others_do(tmp_path, caplog):
    config = flower_config()
    grid = grid_for(config, tmp_path)
    *others, strange = grid.nodes
    grid.nodes[strange].bend = bent(2)
    with caplog.at_level(logging.INFO, logger="flwr"):
        result = run_on(grid, config, tmp_path / "run")
    assert f"node {strange} does not say which client it is: its records have format 2" in caplog.text
    kinds = [message.metadata.message_type for message in grid.nodes[strange].messages]
    assert set(kinds) == {"query"}
    assert all(any(m.metadata.message_type == "train" for m in grid.nodes[node].messages) for node in others)
    assert result.summary["rounds"] == len(history(result)) == 4


def test_an_answer_of_another_format_is_refused_and_the_round_goes_on(tmp_path, caplog):
    config = flower_config()
    grid = grid_for(config, tmp_path)
    node = next(iter(grid.nodes.values()))
    node.bend = lambda reply: bent(2)(reply) if reply.metadata.message_type == "train" else [reply]
    run_on(grid, config, tmp_path / "run")
    assert "its records have format 2" in caplog.text


def test_a_task_of_another_format_is_not_begun():
    content = order_to_records(Order(Task(1, 0, "mlp", NOTHING), "0" * 64, 0))
    content[CONFIG][FORMAT] = 2
    with pytest.raises(DataError, match="its records have format 2, this fedfuse has 1"):
        order_from_records(content)


def test_a_node_says_to_its_owner_that_the_server_has_another_format(tmp_path, caplog, monkeypatch):
    config = flower_config()
    grid = grid_for(config, tmp_path)
    monkeypatch.setattr("fedfuse.flower.roster.OURS", 2)
    with caplog.at_level(logging.WARNING, logger="flwr"):
        run_on(grid, config, tmp_path / "run")
    assert "the server will not let this node take part: its records have format 2, this fedfuse has 1" in caplog.text
