"""One node of four says whatever it likes: the others' run goes on, and the log stays short."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MessageType, MetricRecord

from fedfuse.flower.server import run_on
from tests.flower.federation import flower_config, grid_for
from tests.flower.test_npy import HOSTILE
from tests.helpers import files_of

pytestmark = pytest.mark.usefixtures("without_pictures")
NODE, CLIENT = 98, 2
SECRET = "ours/patients.csv"


def an_array(data, stype="numpy.ndarray"):
    def change(content):
        name = next(iter(content["arrays"]))
        content["arrays"][name] = Array("float32", (3,), stype, data)

    return change


def a_value(record, name, value):
    def change(content):
        content[record][name] = value

    return change


def a_record(name, record):
    def change(content):
        content[name] = record

    return change


def many_metrics(content):
    content["metrics"] = MetricRecord({**content["metrics"], **{f"{SECRET} {number}": 1.0 for number in range(15000)}})


ANSWERS = {
    **{f"array: {name}": an_array(data) for name, data in HOSTILE.items()},
    "pickle": an_array(b"\x80\x04", "torch.pickle"),
    "round inf": a_value("config", "server-round", float("inf")),
    "client list": a_value("config", "client", [1]),
    "client of another": a_value("config", "client", 1),
    "prototype of 10 MB": a_value("config", "prototype", SECRET * 600_000),
    "prototype with lines": a_value("config", "prototype", f"{SECRET}\n\x1b[2J"),
    "examples inf": a_value("metrics", "num-examples", float("inf")),
    "examples list": a_value("metrics", "num-examples", [1, 2]),
    "arrays of another kind": a_record("arrays", ConfigRecord({"a": 1})),
    "extras of another kind": a_record("extras", ConfigRecord({"a": 1})),
    "extras in thousands": a_record(
        "extras", ArrayRecord({f"{SECRET} {n}": Array(np.zeros(1, "f")) for n in range(3000)})
    ),
    "no metrics": lambda content: content.pop("metrics"),
    "metrics in thousands": many_metrics,
    "loss NaN": a_value("metrics", "loss", float("nan")),
    "loss 1e308": a_value("metrics", "loss", 1e308),
}
HARMLESS = ("metrics in thousands", "loss NaN", "loss 1e308")


def hostile(message_type, change):
    """The node's answers to one kind of message, changed."""

    def bend(reply):
        if reply.metadata.message_type == message_type and not reply.has_error():
            changed = change(reply.content)
            return [changed] if isinstance(changed, Message) else [reply]
        return [reply]

    return bend


def missing(result):
    """Who did not count in each round, whatever the word for it."""
    words = ("refused", "absent", "late")
    return [tuple(client for word in words for client in getattr(record, word, ())) for record in result.history]


def without_node(config, folder):
    folder.mkdir()
    grid = grid_for(config, folder)
    del grid.nodes[NODE]
    return run_on(grid, config, folder / "run")


CONFIG = flower_config(federation={"rounds": 2})


@pytest.fixture(scope="module")
def silent(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedfuse.experiment.run.draw_run", lambda *_args, **_options: None)
        from flwr.supercore.task_identity import TaskIdentity

        for name in ("_task_id", "_run_id", "_node_id"):
            patch.setattr(TaskIdentity, name, 1)
        return files_of(without_node(CONFIG, tmp_path_factory.mktemp("silent") / "run").folder.final)


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_costs_its_node_alone(tmp_path, caplog, silent, name):
    grid = grid_for(CONFIG, tmp_path)
    grid.nodes[NODE].bend = hostile(MessageType.TRAIN, ANSWERS[name])
    with caplog.at_level(logging.INFO, "flwr"):
        result = run_on(grid, CONFIG, tmp_path / "run")
    log = (tmp_path / "run" / "events.jsonl").read_text()
    assert len(log) + len(caplog.text) < 30_000
    assert SECRET not in log + caplog.text
    assert "\x1b" not in caplog.text
    if name in HARMLESS:
        assert missing(result) == [(), ()]
        for line in log.splitlines():
            json.loads(line, parse_constant=lambda word: pytest.fail(word))
    else:
        assert missing(result) == [(CLIENT,), (CLIENT,)]
        assert files_of(result.folder.final) == silent


WORDS = {
    "examples as a word": a_value("config", "num-examples", "many"),
    "examples as a list": a_value("config", "num-examples", [5]),
    "examples inf": a_value("config", "num-examples", float("inf")),
    "examples as bytes": a_value("config", "num-examples", b"x"),
    "client true": a_value("config", "client", True),
    "client -1": a_value("config", "client", -1),
    "client 10^18": a_value("config", "client", 10**18),
    "client a word": a_value("config", "client", SECRET),
    "prototype a number": a_value("config", "prototype", 7),
    "prototype with lines": a_value("config", "prototype", f"{SECRET}\n\x1b[2J"),
    "prototype of 10 MB": a_value("config", "prototype", "x" * 10**7),
    "config of another kind": a_record("config", MetricRecord({"client": 2})),
    "nothing": lambda content: content.pop("config"),
}


@pytest.mark.parametrize("name", WORDS)
def test_a_word_about_itself_costs_its_node_alone(tmp_path, caplog, silent, name):
    grid = grid_for(CONFIG, tmp_path)
    grid.nodes[NODE].bend = hostile(MessageType.QUERY, WORDS[name])
    with caplog.at_level(logging.INFO, "flwr"):
        result = run_on(grid, CONFIG, tmp_path / "run")
    assert missing(result) == [(CLIENT,), (CLIENT,)]
    assert files_of(result.folder.final) == silent
    assert SECRET not in caplog.text
    assert len(caplog.text) < 10_000


@pytest.mark.parametrize("code", [0, 1, 2, 3, 7, 8, 101, 99999])
@pytest.mark.parametrize("message_type", [MessageType.TRAIN, MessageType.QUERY])
def test_the_text_of_a_nodes_error_stays_out_of_the_servers_log(tmp_path, caplog, code, message_type):
    grid = grid_for(CONFIG, tmp_path)
    node = grid.nodes[NODE]

    def bend(reply):
        is_meant = reply.metadata.message_type == message_type
        return [Message(Error(code, f"{SECRET}\n\x1b[2J" * 1000), reply_to=node.messages[-1]) if is_meant else reply]

    node.bend = bend
    with caplog.at_level(logging.INFO, "flwr"):
        result = run_on(grid, CONFIG, tmp_path / "run")
    assert missing(result) == [(CLIENT,), (CLIENT,)]
    assert "the node's own log says more" in caplog.text
    assert SECRET not in caplog.text
    assert len(caplog.text) < 10_000


def change_when_fetched(grid, change):
    """Let ``change`` have the bad node's answer to its latest task, as the server fetches it."""
    pull, bad = grid.pull_messages, grid.nodes[NODE]

    def fetched(ids):
        found = pull(ids)
        for message in found:
            about = bad.messages and bad.messages[-1].metadata.message_id == message.metadata.reply_to_message_id
            if about and message.metadata.message_type == MessageType.TRAIN:
                change(message)
        return found

    grid.pull_messages = fetched


def test_a_message_that_flower_cannot_read_costs_its_node_alone(tmp_path, silent):
    """It fails while it is fetched, as it does when the objects of a message are not what their heads say."""
    grid = grid_for(CONFIG, tmp_path)

    def fail(_message):
        raise json.JSONDecodeError("no JSON", "", 0)

    change_when_fetched(grid, fail)
    result = run_on(grid, CONFIG, tmp_path / "run")
    assert missing(result) == [(CLIENT,), (CLIENT,)]
    assert files_of(result.folder.final) == silent


def test_nobody_answers_in_anothers_name(tmp_path, silent):
    """What a reply says that it answers is its sender's word: here, another node's task."""
    grid = grid_for(CONFIG, tmp_path)
    victim = grid.nodes[99]

    def lie(message):
        message.content["config"]["client"] = 1
        message.metadata.__dict__["_reply_to_message_id"] = victim.messages[-1].metadata.message_id

    change_when_fetched(grid, lie)
    result = run_on(grid, CONFIG, tmp_path / "run")
    assert missing(result) == [(CLIENT,), (CLIENT,)]
    assert files_of(result.folder.final) == silent
