"""What an engine's section of an experiment file is: settings that open an engine for one run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from fedfuse.core.messages import Task
from fedfuse.core.part import Part
from fedfuse.federation import Engine
from fedfuse.federation.client import Clients
from fedfuse.federation.events import EventLog


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

    def examples_of(self, tasks: Sequence[Task]) -> list[int]:
        return [self.clients.examples_of(task) for task in tasks]
