"""The Flower engine: tasks go out to nodes as messages, updates come back, until all answered or the time is over.

A client's state never leaves its node. What the server keeps in its place is a claim on it, the round after which the
node stored it; the claim is in the checkpoint and goes out with the client's next task. So a server that was killed and
resumed makes every client go on from the state that belongs to the checkpoint, whatever the nodes did since.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence

import torch
from flwr.app import Message, MessageType, RecordDict

from fedfuse.core.errors import FedfuseError
from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.federation import Engine
from fedfuse.federation.client_states import ClientStates
from fedfuse.flower.records import CONFIG, REFUSED, Order, order_to_records, report_from_records
from fedfuse.flower.roster import Roster

logger = logging.getLogger("flwr")
CLAIM = "flower/round"
"""Where the server's claim on a client's state is."""


class QuorumError(FedfuseError):
    """Too few clients answered; the finished rounds are kept."""


class FlowerEngine(Engine):
    """Clients are nodes of a Flower federation."""

    def __init__(self, roster: Roster, experiment: str) -> None:
        self.roster, self.experiment = roster, experiment
        self.refused: dict[int, str] = {}
        """Why a client's last answer was refused, for its next task to say."""

    def train(self, tasks: Sequence[Task], states: ClientStates) -> Iterator[tuple[Update, Tensors]]:
        settings = self.roster.settings
        seats = self._seats(tasks)
        orders = {node: Order(task, self.experiment, _claimed(states, task)) for node, task in seats.items()}
        contents = {node: order_to_records(order) for node, order in orders.items()}
        for node, order in orders.items():
            if reason := self.refused.pop(order.task.client, ""):
                contents[node][CONFIG][REFUSED] = reason
        answered = 0
        for node, reply in self._replies(contents):
            answer = _answer(reply, seats.pop(node))
            if answer is not None:
                answered += 1
                yield answer
            else:
                self.roster.forget(node)
        for node in seats:
            self.roster.forget(node)
        if answered < settings.quorum * len(tasks):
            raise QuorumError(
                f"round {tasks[0].round}: {answered} of {len(tasks)} clients answered, engine.quorum asks for "
                f"{settings.quorum:.0%}; finished rounds are kept, start the app again to go on"
            )

    def _replies(self, contents: Mapping[int, RecordDict]) -> Iterator[tuple[int, Message]]:
        """Send each node its content and hand out the replies as they come, one per node, until the time is over.

        Flower's own ``send_and_receive`` looks every 3 seconds and hands out the replies at the end.
        """
        grid, settings = self.roster.grid, self.roster.settings
        messages = [
            Message(content, dst_node_id=node, message_type=MessageType.TRAIN, ttl=settings.timeout)
            for node, content in contents.items()
        ]
        numbers = grid.push_messages(messages) if messages else []
        waiting = {number: node for number, node in zip(numbers, contents, strict=False) if number}
        end = time.monotonic() + settings.timeout
        while waiting:
            for reply in grid.pull_messages(sorted(waiting)):
                node = waiting.pop(reply.metadata.reply_to_message_id, None)
                if node is not None:
                    yield node, reply
            if time.monotonic() >= end:
                return
            if waiting:
                time.sleep(settings.poll)

    def close(self) -> None:
        """The grid belongs to the ServerApp."""

    def _seats(self, tasks: Sequence[Task]) -> dict[int, Task]:
        """The tasks by node, of those clients whose node is there and runs the model that the task is about."""
        nodes = self.roster.wait_for({task.client for task in tasks})
        seats = {}
        for task in tasks:
            if task.client not in nodes:
                logger.warning("round %s: client %s is not connected", task.round, task.client)
                continue
            announced = self.roster.members[nodes[task.client]].prototype
            if announced not in (None, task.prototype):
                logger.warning("client %s runs '%s', but began with '%s'", task.client, announced, task.prototype)
                continue
            seats[nodes[task.client]] = task
        return seats


def _answer(reply: Message, task: Task) -> tuple[Update, Tensors] | None:
    """An update for the server to inspect, or None if there is nothing to inspect."""
    try:
        if reply.has_error():
            raise FedfuseError(reply.error.reason)
        report = report_from_records(reply.content, task)
        if report.update.client != task.client:
            raise FedfuseError(f"it answers for client {report.update.client}")
    except FedfuseError as error:
        logger.warning("round %s: client %s has no answer: %s", task.round, task.client, error)
        return None
    return report.update, {CLAIM: torch.tensor(task.round)} if report.keeps_state else {}


def _claimed(states: ClientStates, task: Task) -> int:
    state = states.get(task.client, {})
    return int(state[CLAIM]) if CLAIM in state else 0
