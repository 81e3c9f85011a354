"""The local engine: clients train one after another in this process, which is the easiest to debug."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.federation.state import ClientStates
from fedfuse.local import Clients


class LocalEngine:
    """In-process clients that share resident models."""

    def __init__(self, clients: Clients) -> None:
        self.clients = clients

    def train(self, tasks: Sequence[Task], states: ClientStates) -> Iterator[tuple[Update, Tensors]]:
        for task in tasks:
            yield self.clients.work(task, states.get(task.client, {}))

    def close(self) -> None:
        """Nothing is held."""
