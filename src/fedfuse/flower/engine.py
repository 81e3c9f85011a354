"""The Flower engine: tasks go out to nodes as messages, updates come back, until all answered or the time is over.

A client's state never leaves its node. What the server keeps in its place is a claim on it, the round after which the
node stored it; the claim is in the checkpoint and goes out with the client's next task. So a server that was killed and
resumed makes every client go on from the state that belongs to the checkpoint, whatever the nodes did since.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from flwr.app import Error, Message, MessageType, RecordDict
from flwr.common.constant import ErrorCode

from fedfuse.core.errors import FedfuseError
from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.federation import Engine
from fedfuse.federation.client_states import ClientStates
from fedfuse.federation.engine import Missed, Residues
from fedfuse.federation.sums.settings import SecureSums
from fedfuse.flower.failures import why_not
from fedfuse.flower.masking.server import Masking
from fedfuse.flower.records import CONFIG, REFUSED, ROUND, Order, order_to_records, report_from_records
from fedfuse.flower.replies import replies
from fedfuse.flower.roster import ASKING, Roster

CLAIM = "flower/round"
"""Where the server's claim on a client's state is."""
TOO_LATE = (ErrorCode.MESSAGE_UNAVAILABLE, ErrorCode.REPLY_MESSAGE_UNAVAILABLE, ErrorCode.NODE_UNAVAILABLE)
"""With these Flower itself answers in the place of a node that has not, when the time is over or the node is gone."""


@dataclass(frozen=True)
class Summed:
    """Which clients are added up: those of one model, or all of them."""

    settings: SecureSums
    across_models: bool

    def group_of(self, task: Task) -> str:
        return "" if self.across_models else task.prototype


class FlowerEngine(Engine):
    """Clients are nodes of a Flower federation."""

    keeps_secrets = True

    def __init__(self, roster: Roster, experiment: str, sums: Summed | None = None, run: int | None = None) -> None:
        """``sums`` says which clients are added up, where that is all that may be seen of them; ``run`` is Flower's."""
        self.roster, self.experiment, self.sums = roster, experiment, sums
        self.untold_run = run
        self.masking: Masking | None = None
        self.quorum = roster.settings.quorum
        self._missed: dict[int, Missed] = {}
        self.refused: dict[int, str] = {}
        """Why a client's last answer was refused, for its next task to say."""

    def announced(self, clients: Collection[int]) -> Mapping[int, str]:
        """What the nodes of these clients say, once all are there or the time to wait is over."""
        nodes = self.roster.wait_for(clients)
        said = {client: self.roster.members[node].prototype for client, node in nodes.items()}
        return {client: prototype for client, prototype in said.items() if prototype is not None}

    def train(self, tasks: Sequence[Task], states: ClientStates) -> Iterator[tuple[Update, Tensors]]:
        self._missed = {}
        seats = self._seats(tasks)
        orders = {node: Order(task, self.experiment, _claimed(states, task)) for node, task in seats.items()}
        contents = {node: order_to_records(order) for node, order in orders.items()}
        if self.sums is not None:
            self._agree_on_masks(self.sums, seats, contents)
        for node, order in orders.items():
            if reason := self.refused.pop(order.task.client, ""):
                contents[node][CONFIG][REFUSED] = reason
        for node, reply in self._replies(contents):
            task = seats.pop(node)
            answer = _answer(reply, task)
            if isinstance(answer, Missed):
                self._miss(task.client, answer, node)
            else:
                yield answer
        for node, task in seats.items():
            self._miss(task.client, Missed("late", f"no answer within {self.roster.settings.timeout:g} s"), node)

    def _agree_on_masks(self, sums: Summed, seats: dict[int, Task], contents: dict[int, RecordDict]) -> None:
        """Let the nodes agree on masks; those who do not get no task."""
        nodes, groups = {task.client: node for node, task in seats.items()}, dict[str, list[int]]()
        for task in seats.values():
            groups.setdefault(sums.group_of(task), []).append(task.client)
        self.masking = Masking(sums.settings, partial(self._ask, nodes), lambda c, why: self._miss(c, why, nodes[c]))
        about = {ROUND: next((task.round for task in seats.values()), 0), "experiment": self.experiment}
        letters = self.masking.agree(groups.values(), about)
        for client, node in nodes.items():
            if client in letters:
                contents[node].update(letters[client])
            else:
                del seats[node], contents[node]

    def masks_of(self, clients: Sequence[int], like: Residues) -> Residues | None:
        return self.masking.masks_of(clients, like) if self.masking else None

    def _ask(
        self, nodes: Mapping[int, int], step: str, asked: Mapping[int, RecordDict]
    ) -> Iterator[tuple[int, RecordDict | Missed]]:
        """Ask clients something that takes no training, and hear them all, or why not."""
        patience = min(self.roster.settings.timeout, max(ASKING, self.roster.settings.wait))
        waiting = {nodes[client]: client for client in asked}
        contents = {nodes[client]: content for client, content in asked.items()}
        for node, reply in self._replies(contents, f"{MessageType.QUERY}.{step}", patience):
            client = waiting.pop(node)
            if reply is None or reply.has_error():
                yield client, _failed(reply and reply.error)
            else:
                yield client, reply.content
        for client in waiting.values():
            yield client, self._missed.get(client) or Missed("late", f"no {step} for masks within {patience:g} s")

    def missed(self) -> Mapping[int, Missed]:
        return self._missed

    def news(self) -> list[tuple[str, Mapping[str, Any]]]:
        """As which run of Flower nodes were asked, once; and nodes that claim the seat of another one."""
        run, self.untold_run = self.untold_run, None
        asked: list[tuple[str, Mapping[str, Any]]] = [] if run is None else [("parties_asked", {"run": run})]
        return [*asked, *(("seat_claimed", asdict(claim)) for claim in self.roster.claims())]

    def _miss(self, client: int, why: Missed, node: int) -> None:
        """Nothing to inspect came from a node, which is asked anew who it is before it gets another task."""
        self._missed.setdefault(client, why)
        self.roster.forget(node)

    def _replies(
        self, contents: Mapping[int, RecordDict], kind: str = MessageType.TRAIN, patience: float | None = None
    ) -> Iterator[tuple[int, Message | None]]:
        """Send each node its content and hand out the replies as they come, one per node, until the time is over.

        Flower's own ``send_and_receive`` looks every 3 seconds and hands out the replies at the end.
        """
        grid, settings = self.roster.grid, self.roster.settings
        patience = settings.timeout if patience is None else patience
        messages = [
            Message(content, dst_node_id=node, message_type=kind, ttl=patience) for node, content in contents.items()
        ]
        numbers = grid.push_messages(messages) if messages else []
        waiting = {number: node for number, node in zip(numbers, contents, strict=False) if number}
        for unsent in contents.keys() - set(waiting.values()):
            if unsent in self.roster.members:
                self._missed[self.roster.members[unsent].client] = Missed("absent", "its node went away")
        end = time.monotonic() + patience
        while waiting:
            for number, reply in replies(grid, sorted(waiting)):
                yield waiting.pop(number), reply
            if time.monotonic() >= end:
                return
            if waiting:
                time.sleep(settings.poll)

    def close(self) -> None:
        """The grid belongs to the ServerApp."""

    def _seats(self, tasks: Sequence[Task]) -> dict[int, Task]:
        """The tasks by node, of those clients whose node is there and runs the model that the task is about."""
        nodes, seats = self.roster.seats, {}
        for task in tasks:
            if task.client not in nodes:
                reason = f"no node said within {self.roster.settings.wait:g} s that it is this client"
                self._missed[task.client] = Missed("absent", f"{reason}; it is not connected, or still starting")
            elif self.roster.members[nodes[task.client]].prototype not in (None, task.prototype):
                reason = f"its node runs another model than '{task.prototype}', which the run has for this client"
                self._missed[task.client] = Missed("absent", reason)
            else:
                seats[nodes[task.client]] = task
        return seats


def _answer(reply: Message | None, task: Task) -> tuple[Update, Tensors] | Missed:
    """An update for the server to inspect, or why there is nothing to inspect."""
    if reply is None or reply.has_error():
        return _failed(reply and reply.error)
    try:
        report = report_from_records(reply.content, task)
    except FedfuseError as error:
        return Missed("refused", str(error))
    if report.update.client != task.client:
        return Missed("refused", "answers for another client")
    return report.update, {CLAIM: torch.tensor(task.round)} if report.keeps_state else {}


def _failed(error: Error | None) -> Missed:
    """In our words: what a node says of its failure is its own text, and nobody else's."""
    is_late = error is not None and error.code in TOO_LATE
    return Missed("late" if is_late else "refused", why_not(error))


def _claimed(states: ClientStates, task: Task) -> int:
    state = states.get(task.client, {})
    return int(state[CLAIM]) if CLAIM in state else 0
