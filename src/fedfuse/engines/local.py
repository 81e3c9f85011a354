"""The local engine: one machine, clients in this process, in several worker processes, or in both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from fedfuse.engines.base import EngineSettings, SimulatedEngine
from fedfuse.engines.beginnings import check_may_have_others
from fedfuse.engines.jobs import Job
from fedfuse.engines.joined import JoinedEngine, other_cores
from fedfuse.engines.workers import WorkersEngine
from fedfuse.federation import Engine
from fedfuse.federation.client import Clients
from fedfuse.federation.events import EventLog
from fedfuse.runtime.pool import IN_PROCESS, Pool, silence


class LocalEngineSettings(EngineSettings):
    """Clients run on this machine."""

    kind: Literal["local"] = "local"
    workers: Annotated[int, Field(ge=0, le=1024)] | Literal["auto"] = Field(
        "auto",
        description="processes that train clients; 0 and 1: this process does; auto: this process, and one more for "
        "every other core once enough is left to do",
    )
    timeout: float | None = Field(None, gt=0, description="seconds after which a worker's client is tried anew")

    @model_validator(mode="after")
    def _who_could_be_stopped(self) -> Self:
        if self.timeout is not None and not self.has_processes:
            raise ValueError("a timeout needs workers of 2 or more: a client in this process cannot be stopped")
        return self

    @property
    def has_processes(self) -> bool:
        return self.workers != "auto" and self.workers > 1

    def open(self, clients: Clients, log: EventLog) -> Engine:
        if self.workers == "auto" and other_cores():
            return JoinedEngine(clients, log, other_cores())
        if not self.has_processes:
            return LocalEngine(clients)
        check_may_have_others(f"engine.workers = {self.workers}")
        return WorkersEngine(clients, int(self.workers), self.timeout, log)


class LocalEngine(SimulatedEngine):
    """In-process clients that share resident models: the easiest to debug."""

    def __init__(self, clients: Clients) -> None:
        self.clients = clients

    def results(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Any]]:
        for place, job in enumerate(jobs):
            yield place, job(self.clients, silence)

    def pool(self, number: int) -> Pool:
        return IN_PROCESS

    def close(self) -> None:
        """Nothing is held."""
