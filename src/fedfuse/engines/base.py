"""What an engine's section of an experiment file is: settings that open an engine for one run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.part import Part
from fedfuse.engines.jobs import Job, WorkerPool, trainings
from fedfuse.federation import Engine
from fedfuse.federation.client import Clients
from fedfuse.federation.client_states import ClientStates
from fedfuse.federation.events import EventLog
from fedfuse.runtime.pool import Pool


class EngineSettings(Part):
    """Where clients run. It changes no bit of the result, and so is no part of a run's identity."""

    kind: str

    @property
    def has_processes(self) -> bool:
        """Whether clients run in other processes than this one."""
        return True

    @abstractmethod
    def open(self, clients: Clients, log: EventLog) -> Engine:
        """An engine that can play these clients; it is closed when the run ends."""


class SimulatedEngine(Engine):
    """The base of engines that play clients themselves: the same task gives the same update as often as it is done."""

    clients: Clients

    @abstractmethod
    def results(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Any]]:
        """Each job's result with its place, as they come."""

    def train(self, tasks: Sequence[Task], states: ClientStates) -> Iterator[tuple[Update, Tensors]]:
        for _, replies in self.results(trainings(self.clients, tasks, states)):
            yield from replies
            del replies  # nothing is held here while the next clients work

    def pool(self, number: int) -> Pool:
        return WorkerPool(number, self.results)

    def examples_of(self, tasks: Sequence[Task]) -> list[int]:
        return [self.clients.examples_of(task) for task in tasks]
