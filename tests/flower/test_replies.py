"""Replies as Flower really brings them, in pieces, of which one is damaged on the way."""

from __future__ import annotations

from random import Random

import httpx
import pytest
from flwr.app import Error, Message, RecordDict
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents

from fedfuse.core.errors import ConfigError, DataError, FedfuseError
from fedfuse.flower.failures import failure, why_not
from fedfuse.flower.records import Report, report_from_records, report_to_records
from fedfuse.flower.replies import replies
from tests.flower.grid import InProcessGrid
from tests.fuzzing.records import TASK, UPDATE, _damaged


class Pieces(InProcessGrid):
    """Puts a reply together as Flower's own grid does."""

    def __init__(self, root, pieces):
        super().__init__({})
        self.root, self.pieces = root, pieces

    def pull_messages(self, message_ids):
        assert len(list(message_ids)) == 1
        message = inflate_object_from_contents(self.root, dict(self.pieces))
        message.metadata.__dict__["_message_id"] = self.root
        return [message]


def pieces_of(content):
    asked = Message(RecordDict(), dst_node_id=3, message_type="train")
    asked.metadata.__dict__["_message_id"] = "asked"
    reply = Message(content, reply_to=asked)
    reply.metadata.__dict__["_message_id"] = reply.object_id
    return reply.object_id, {name: piece.deflate() for name, piece in get_all_nested_objects(reply).items()}


def with_one_damaged(rng, pieces):
    """The head stays true, because a SuperLink looks at it; or one piece is in another's place."""
    name = rng.choice(list(pieces))
    if rng.random() < 0.3:
        return {**pieces, name: pieces[rng.choice(list(pieces))]}
    head, _, body = pieces[name].partition(b"\0")
    kind, children, _ = head.split(b" ")
    body = _damaged(rng, body)
    return {**pieces, name: b" ".join([kind, children, str(len(body)).encode()]) + b"\0" + body}


def test_damaged_pieces_raise_nothing():
    root, pieces = pieces_of(report_to_records(Report(UPDATE, keeps_state=True)))
    assert next(replies(Pieces(root, pieces), ["asked"]))[1] is not None
    read = refused = unreadable = 0
    for number in range(1500):
        [(question, reply)] = replies(Pieces(root, with_one_damaged(Random(number), pieces)), ["asked"])
        assert question == "asked"
        if reply is None:
            unreadable += 1
        elif not reply.has_error():
            try:
                report_from_records(reply.content, TASK)
                read += 1
            except FedfuseError:
                refused += 1
    assert min(read, refused, unreadable) > 20


def test_a_superlink_that_is_not_there_is_not_a_bad_reply():
    class Unreachable(InProcessGrid):
        def pull_messages(self, message_ids):  # noqa: ARG002
            raise httpx.ConnectError("refused")

    with pytest.raises(httpx.ConnectError):
        list(replies(Unreachable({}), ["asked"]))


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (DataError("ours/patients.csv, row 3"), "its data do not fit this experiment"),
        (ConfigError("ours"), "its settings do not fit this experiment"),
        (OSError("ours/patients.csv"), "its app ended with an error"),
        (MemoryError(), "its app ended with an error"),
    ],
)
def test_a_failure_travels_without_its_words(error, sentence):
    sent = failure(error)
    assert "ours" not in sent.reason
    assert why_not(sent) == f"{sentence}; the node's own log says more"


def test_no_code_brings_words_along():
    for code in range(-5, 200):
        said = why_not(Error(code, "ours/patients.csv\n"))
        assert "ours" not in said
        assert said.isprintable()
