"""The local engine: one machine, clients one after another in this process or in several worker processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.engines.base import EngineSettings
from fedfuse.engines.workers import WorkersEngine
from fedfuse.federation import Engine
from fedfuse.federation.client import Clients
from fedfuse.federation.client_states import ClientStates
from fedfuse.federation.events import EventLog


class LocalEngineSettings(EngineSettings):
    """Clients run on this machine."""

    kind: Literal["local"] = "local"
    workers: int = Field(1, ge=0, le=1024, description="processes that train clients; 0 and 1: this process does")
    timeout: float | None = Field(None, gt=0, description="seconds after which a worker's client is tried anew")

    @model_validator(mode="after")
    def _who_could_be_stopped(self) -> Self:
        if self.timeout is not None and self.workers < 2:
            raise ValueError("a timeout needs workers of 2 or more: a client in this process cannot be stopped")
        return self

    @property
    def has_processes(self) -> bool:
        return self.workers > 1

    def open(self, clients: Clients, log: EventLog) -> Engine:
        if not self.has_processes:
            return LocalEngine(clients)
        return WorkersEngine(clients, self.workers, self.timeout, log)


class LocalEngine(Engine):
    """In-process clients that share resident models: the easiest to debug."""

    def __init__(self, clients: Clients) -> None:
        self.clients = clients

    def train(self, tasks: Sequence[Task], states: ClientStates) -> Iterator[tuple[Update, Tensors]]:
        for task in tasks:
            yield self.clients.work(task, states.get(task.client, {}))

    def close(self) -> None:
        """Nothing is held."""
