"""Clients whose updates arrive in another order than they were asked in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.engines import EngineSettings, LocalEngine
from fedfuse.federation import Engine
from fedfuse.federation.client import Clients
from fedfuse.federation.client_states import ClientStates
from fedfuse.federation.events import EventLog


class LastFirst(EngineSettings):
    """Clients in this process, the last one first."""

    kind: Literal["last_first"] = "last_first"

    def open(self, clients: Clients, log: EventLog) -> Engine:
        return LastFirstEngine(clients)


class LastFirstEngine(LocalEngine):
    """As the local engine, but for the order."""

    def train(self, tasks: Sequence[Task], states: ClientStates) -> Iterator[tuple[Update, Tensors]]:
        return super().train(tasks[::-1], states)
