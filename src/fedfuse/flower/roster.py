"""Who is there: which node plays which client. Nodes say so themselves when they are asked.

A node is asked once, by a query message, and again after it was away or failed. A client number belongs to the node
that took it first, as long as that node is connected.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.serverapp import Grid

from fedfuse.engines import FlowerEngineSettings
from fedfuse.flower.records import CLIENT, CONFIG, EXAMPLES, PROTOTYPE

logger = logging.getLogger("flwr")
ASKING = 120.0
"""Seconds in which a node must say who it is; its first message may start a process and read a dataset."""


@dataclass(frozen=True)
class Member:
    """What a node says about itself; no ``prototype`` leaves the choice to the server."""

    client: int
    prototype: str | None
    examples: int


class Roster:
    """The nodes of one federation of ``clients`` clients."""

    def __init__(self, grid: Grid, clients: int, settings: FlowerEngineSettings) -> None:
        self.grid, self.clients, self.settings = grid, clients, settings
        self.members: dict[int, Member] = {}
        self._silent: set[int] = set()

    def wait_for(self, clients: Collection[int]) -> dict[int, int]:
        """The nodes of these clients, once all are there or the time to wait is over."""
        end = time.monotonic() + self.settings.wait
        while True:
            self._look(end)
            nodes = {member.client: node for node, member in self.members.items() if member.client in clients}
            if len(nodes) == len(clients) or time.monotonic() >= end:
                return nodes
            time.sleep(self.settings.poll)

    def forget(self, node: int) -> None:
        """Ask this node anew before it gets another task."""
        self.members.pop(node, None)

    def _look(self, end: float) -> None:
        present = set(self.grid.get_node_ids())
        self.members = {node: member for node, member in self.members.items() if node in present}
        self._silent &= present
        self._ask(sorted(present - self.members.keys() - self._silent))
        if self.settings.guests and (time.monotonic() >= end or not present - self.members.keys() - self._silent):
            self._seat_guests()

    def _ask(self, nodes: Sequence[int]) -> None:
        question = RecordDict({CONFIG: ConfigRecord({"clients": self.clients})})
        for reply in exchange(self.grid, dict.fromkeys(nodes, question), MessageType.QUERY, ASKING, self.settings.poll):
            node = reply.metadata.src_node_id
            member = None if reply.has_error() else _member(reply.content)
            if member is None:
                self._silent.add(node)
            elif not 0 <= member.client < self.clients:
                logger.warning("node %s: client %s is not one of 0..%s", node, member.client, self.clients - 1)
            elif member.client in self._taken():
                logger.warning("node %s: client %s is played by another node", node, member.client)
            else:
                self.members[node] = member

    def _seat_guests(self) -> None:
        for node in sorted(self._silent):
            free = sorted(set(range(self.clients)) - self._taken())
            if free:
                self.members[node] = Member(free[0], None, 0)
                self._silent.discard(node)

    def _taken(self) -> set[int]:
        return {member.client for member in self.members.values()}


def exchange(grid: Grid, contents: dict[int, RecordDict], kind: str, timeout: float, poll: float) -> Iterator[Message]:
    """Send each node its content and hand out the replies as they come, until the time is over.

    Flower's own ``send_and_receive`` looks every 3 seconds and hands out the replies at the end.
    """
    messages = [
        Message(content, dst_node_id=node, message_type=kind, ttl=timeout) for node, content in contents.items()
    ]
    waiting = {number for number in grid.push_messages(messages) if number} if messages else set()
    end = time.monotonic() + timeout
    while waiting:
        for reply in grid.pull_messages(sorted(waiting)):
            waiting.discard(reply.metadata.reply_to_message_id)
            yield reply
        if time.monotonic() >= end:
            return
        if waiting:
            time.sleep(poll)


def _member(content: RecordDict) -> Member | None:
    about = content.get(CONFIG)
    if about is None or not isinstance(about.get(CLIENT), int):
        return None
    prototype = about.get(PROTOTYPE)
    return Member(about[CLIENT], str(prototype) if prototype else None, int(about.get(EXAMPLES, 0)))
