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

from fedfuse.engines import FlowerEngineSettings
from fedfuse.flower.parties import Parties
from fedfuse.flower.records import CLIENT, CONFIG, EXAMPLES, PROTOTYPE
from fedfuse.flower.versions import FORMAT, OURS, foreign

logger = logging.getLogger("flwr")
ASKING, REST = 60.0, 10.0
"""Seconds until a question counts as lost, and until a node is asked again that had no answer: it may have been started
anew, with another node config."""


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

    def _look(self) -> None:
        present, now = set(self.grid.get_node_ids()), time.monotonic()
        self.members = {node: member for node, member in self.members.items() if node in present}
        self._asked = {q: (node, until) for q, (node, until) in self._asked.items() if node in present and now < until}
        self._resting = {node: until for node, until in self._resting.items() if node in present and now < until}
        asked = {node for node, _ in self._asked.values()}
        self._ask(sorted(present - self.members.keys() - self._resting.keys() - asked), now + ASKING)
        self._listen(now)
        if self.settings.guests and not self._asked:
            self._seat_guests()

    def _ask(self, nodes: Sequence[int], until: float) -> None:
        content = RecordDict({CONFIG: ConfigRecord({"clients": self.clients, FORMAT: OURS})})
        messages = [Message(content, dst_node_id=node, message_type=MessageType.QUERY, ttl=ASKING) for node in nodes]
        questions = self.grid.push_messages(messages) if messages else []
        self._asked |= {q: (node, until) for q, node in zip(questions, nodes, strict=True) if q}

    def _listen(self, now: float) -> None:
        for reply in self.grid.pull_messages(list(self._asked)) if self._asked else ():
            node, _ = self._asked.pop(reply.metadata.reply_to_message_id)
            member = None if reply.has_error() else _member(reply.content)
            if member is not None and not self.parties.may_play(node, member.client):
                self._resting[node] = now + REST
                logger.warning(
                    "security: node %s says that it is client %s, but its key was not registered for that client by "
                    "fedfuse flower register; it gets no task",
                    node,
                    member.client,
                )
            elif member is not None:
                self.members[node] = member
            else:
                self._resting[node] = now + REST
                reason = reply.error.reason if reply.has_error() else _why_not(reply.content)
                logger.info("node %s does not say which client it is: %s", node, reason)

    def _seat_guests(self) -> None:
        free = sorted(set(range(self.clients)) - self.seats.keys())
        for client, node in self.parties.pairs(free, sorted(self._resting)):
            self.members[node] = Member(client, None, 0)
            del self._resting[node]


def _member(content: RecordDict) -> Member | None:
    about = content.get(CONFIG)
    if about is None or not isinstance(about.get(CLIENT), int) or foreign(about):
        return None
    prototype = about.get(PROTOTYPE)
    return Member(about[CLIENT], str(prototype) if prototype else None, int(about.get(EXAMPLES, 0)))


def _why_not(content: RecordDict) -> str:
    return foreign(content.get(CONFIG)) or "its answer names no client"
