"""Replies of nodes, fetched so that none can harm another.

They are fetched one by one: if Flower cannot read one of several that it fetches together, all are lost. And what a
reply says about itself is its sender's word, so it counts as the answer to the message that it was fetched for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from flwr.app import Message
from flwr.serverapp import Grid
from google.protobuf.message import DecodeError

UNREADABLE = (
    DecodeError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError, AssertionError, RecursionError,
    MemoryError,
)  # fmt: skip
"""What Flower raises while it reads a message; what it raises when it cannot reach the SuperLink is not among them."""


def replies(grid: Grid, questions: Iterable[str]) -> Iterator[tuple[str, Message | None]]:
    """Of these messages, those that were answered, each with its reply, or None for one that cannot be read."""
    for question in questions:
        try:
            found = list(grid.pull_messages([question]))
        except UNREADABLE:
            yield question, None
        else:
            yield from ((question, reply) for reply in found[:1])
