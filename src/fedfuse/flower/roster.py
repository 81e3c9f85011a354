"""Who is there: which node plays which client. Nodes say so themselves when they are asked, by a query message.

A client number belongs to the node whose key was registered for it. Where keys are not registered for numbers, it
belongs to the node that named it first, as long as that node is connected and answers; the next one that named it steps
in. So a node that comes back under another id takes its place again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.serverapp import Grid

from fedfuse.core.errors import DataError
from fedfuse.engines import FlowerEngineSettings
from fedfuse.flower.failures import why_not
from fedfuse.flower.parties import Parties
from fedfuse.flower.reading import number_of, record_of, word_of
from fedfuse.flower.records import CLIENT, CONFIG, EXAMPLES, PROTOTYPE
from fedfuse.flower.replies import replies
from fedfuse.flower.versions import FORMAT, OURS, check_format

logger = logging.getLogger("flwr")
ASKING, REST = 60.0, 10.0
"""Seconds until a question counts as lost, unless ``engine.wait`` is longer, and until a node without answer is asked
again: it may have been started anew, with another node config."""
CLAIMS = 100
"""Claims to others' seats that are told of; one who makes thousands of them shall not fill the log."""


@dataclass(frozen=True)
class Claim:
    """A node says that it is a client whose seat another node, the ``holder``, has."""

    client: int
    node: int
    holder: int | None


NOT_REGISTERED = (
    "says that it is client {}, but its key was not registered for that client by fedfuse flower register; it gets no "
    "task"
)


@dataclass(frozen=True)
class Member:
    """What a node says about itself; no ``prototype`` leaves the choice to the server."""

    client: int
    prototype: str | None
    examples: int


class Roster:
    """The nodes of one federation of ``clients`` clients."""

    def __init__(
        self, grid: Grid, clients: int, settings: FlowerEngineSettings, parties: Parties | None = None
    ) -> None:
        self.grid, self.clients, self.settings = grid, clients, settings
        self.parties = parties or Parties()
        self.members: dict[int, Member] = {}
        self._asked: dict[str, tuple[int, float]] = {}
        self._resting: dict[int, float] = {}
        self._claims: list[Claim] = []
        self._claimants: set[int] = set()
        self._told: dict[int, str] = {}

    @property
    def seats(self) -> dict[int, int]:
        """The node of each client that is there."""
        first_come: dict[int, int] = {}
        for node, member in self.members.items():
            first_come.setdefault(member.client, node)
        return first_come

    def wait_for(self, clients: Collection[int]) -> dict[int, int]:
        """The nodes of these clients, once all are there or the time to wait is over."""
        end = time.monotonic() + self.settings.wait
        while True:
            self._look()
            seats = {client: node for client, node in self.seats.items() if client in clients}
            if len(seats) == len(clients) or time.monotonic() >= end:
                return seats
            time.sleep(self.settings.poll)

    def forget(self, node: int) -> None:
        """Ask this node anew before it gets another task."""
        self.members.pop(node, None)

    def claims(self) -> list[Claim]:
        """Claims to others' seats since this was asked last, of each node the first."""
        told, self._claims = self._claims, []
        return told

    def _look(self) -> None:
        present, now = set(self.grid.get_node_ids()), time.monotonic()
        self.members = {node: member for node, member in self.members.items() if node in present}
        self._asked = {q: (node, until) for q, (node, until) in self._asked.items() if node in present and now < until}
        self._resting = {node: until for node, until in self._resting.items() if node in present and now < until}
        self._told = {node: reason for node, reason in self._told.items() if node in present}
        asked = {node for node, _ in self._asked.values()}
        self._ask(sorted(present - self.members.keys() - self._resting.keys() - asked), now)
        self._listen(now)
        if self.settings.guests and not self._asked:
            self._seat_guests()

    def _ask(self, nodes: Sequence[int], now: float) -> None:
        patience = max(ASKING, self.settings.wait)
        content = RecordDict({CONFIG: ConfigRecord({"clients": self.clients, FORMAT: OURS})})
        messages = [Message(content, dst_node_id=node, message_type=MessageType.QUERY, ttl=patience) for node in nodes]
        questions = self.grid.push_messages(messages) if messages else []
        self._asked |= {q: (node, now + patience) for q, node in zip(questions, nodes, strict=True) if q}

    def _listen(self, now: float) -> None:
        holders = self.seats
        for question, reply in replies(self.grid, list(self._asked)):
            node, _ = self._asked.pop(question)
            try:
                member = _member(reply)
            except DataError as error:
                self._leave_out(node, now, f"node {node} does not say which client it is: {error}")
                continue
            if self.parties.may_play(node, member.client):
                self._note_claim(node, member.client, holders.setdefault(member.client, node))
                self.members[node] = member
            else:
                self._note_claim(node, member.client, self.parties.node_of(member.client))
                self._leave_out(node, now, f"security: node {node} {NOT_REGISTERED.format(member.client)}")

    def _leave_out(self, node: int, now: float, why: str) -> None:
        """A node without a seat; it is asked again and again, and logged once."""
        self._resting[node] = now + REST
        if self._told.get(node) != why:
            logger.warning("%s", why)
        self._told[node] = why

    def _note_claim(self, node: int, client: int, holder: int | None) -> None:
        if holder != node and node not in self._claimants and len(self._claimants) < CLAIMS:
            self._claimants.add(node)
            self._claims.append(Claim(client, node, holder))

    def _seat_guests(self) -> None:
        free = sorted(set(range(self.clients)) - self.seats.keys())
        for client, node in self.parties.pairs(free, sorted(self._resting)):
            self.members[node] = Member(client, None, 0)
            del self._resting[node]


def _member(reply: Message | None) -> Member:
    if reply is None or reply.has_error():
        raise DataError(why_not(reply and reply.error))
    return member_of(reply.content)


def member_of(content: RecordDict) -> Member:
    """What a node's records say about itself."""
    about = record_of(content, CONFIG, ConfigRecord)
    check_format(about)
    prototype = word_of(about, PROTOTYPE) if about.get(PROTOTYPE) else None
    return Member(number_of(about, CLIENT), prototype, number_of(about, EXAMPLES, default=0))
