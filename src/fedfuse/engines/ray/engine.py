"""Clients as tasks on Ray: on this machine's cores and GPUs, or on a cluster. And the server's heavy work, if asked to.

The clients' examples are put into Ray's object store once, so that all processes of a machine read the same memory;
what a round's tasks have in common is put there once per round. A Ray process keeps both, and its resident networks,
between tasks. The fusion's teachers are asked side by side with the resources of clients, and so are several students
taught; a distillation is a task of its own if it has resources of its own.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Literal

from pydantic import Field

from fedfuse.core.errors import ConfigError, FedfuseError, MissingExtraError
from fedfuse.engines.base import EngineSettings, SimulatedEngine
from fedfuse.engines.jobs import Job, WorkerPool
from fedfuse.engines.packing import pack, tensors_in
from fedfuse.engines.ray.briefly import speak_briefly
from fedfuse.engines.ray.pool import RayPool, Resources
from fedfuse.engines.ray.process import work
from fedfuse.engines.ray.progress import ProgressQueue
from fedfuse.federation import Engine
from fedfuse.federation.client import Clients
from fedfuse.federation.events import EventLog
from fedfuse.runtime.pool import Pool, Progress


class RayEngineSettings(Resources, EngineSettings):
    """Clients run on Ray (``pip install 'fedfuse[ray]'``), each with these resources."""

    kind: Literal["ray"] = "ray"
    address: str | None = Field(
        None, description="null starts Ray on this machine; auto, host:port or ray://host:port joins a cluster"
    )
    workers: int | None = Field(None, ge=1, description="clients at the same time; null: as many as fit")
    fusion: Resources | None = Field(
        None, description="what a distillation gets as a Ray task; null: a student stays in the run's own process"
    )

    def open(self, clients: Clients, log: EventLog) -> Engine:
        device = clients.bank.compute.device.type
        for key, resources in {"engine": self, "engine.fusion": self.fusion}.items():
            if resources is not None and (device == "cuda") != (resources.gpus > 0):
                raise ConfigError(
                    f"compute.device is {device} and {key}.gpus is {resources.gpus:g}; tasks on Ray need both cuda and "
                    "a share of a GPU, or neither"
                )
        return RayEngine(self, clients, log)


class RayEngine(SimulatedEngine):
    """A connection to Ray for one run."""

    def __init__(self, settings: RayEngineSettings, clients: Clients, log: EventLog) -> None:
        self.settings = settings
        self.log = log
        self._ray = _import(settings.address)
        self._began_here = _connect(self._ray, settings.address)
        self._room("a client", settings)  # too small a cluster is found now
        if settings.fusion is not None:
            self._room("the fusion", settings.fusion)
        self.clients = clients
        self._lasting = tensors_in(clients)
        self._clients = self._ray.put(pack(clients))
        # max_calls: a process that used a GPU would otherwise end after one job.
        self._work = self._ray.remote(max_retries=0, max_calls=0)(work)

    def results(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Any]]:
        """Of clients, or of teachers in their place."""
        return self._crew(self.settings, self._room("a client", self.settings)).results(jobs)

    def pool(self, number: int) -> Pool:
        return WorkerPool(number, self.results, self._fuse if self.settings.fusion else None)

    def close(self) -> None:
        """Leave Ray, which also ends it if this engine started it."""
        if "_ticks" in vars(self):
            self._ticks.close()
            del self._ticks
        if self._began_here:
            self._ray.shutdown()
            self._began_here = False

    def _fuse(self, job: Job, progress: Progress) -> Any:
        wanted = self.settings.fusion
        assert wanted is not None, "nobody would have come here"
        self._room("the fusion", wanted)
        return self._crew(wanted, 1).alone(job, self._ticks, progress)

    def _crew(self, resources: Resources, room: int) -> RayPool:
        return RayPool(self._ray, self._work, resources, room, self._clients, self._lasting, self.log)

    @cached_property
    def _ticks(self) -> ProgressQueue:
        return ProgressQueue()

    def _room(self, who: str, resources: Resources) -> int:
        """How many tasks with these resources fit into the cluster as it is now, or how many shall wait for theirs."""
        if self.settings.workers is not None:
            return self.settings.workers
        wanted = resources.wanted
        machines = [machine["Resources"] for machine in self._ray.nodes() if machine["Alive"]]
        room = sum(min(int(has.get(name, 0) / amount) for name, amount in wanted.items()) for has in machines)
        if room == 0:
            needs = ", ".join(f"{amount:g} {name}" for name, amount in wanted.items())
            raise ConfigError(
                f"engine: {who} wants {needs}, but no machine of the Ray cluster has that; ask for less, or set "
                "engine.workers to wait for machines that are yet to come"
            )
        return room


def _import(address: str | None) -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # both are read at import
    if address is None:  # nobody shall join, so that Ray keeps to the loopback address on every system
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray
    except ImportError:
        raise MissingExtraError("engine ray", "ray") from None
    return ray


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """Ray puts its own answer to SIGTERM, an exit with pages of stack, into the place of ours."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    if before is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)


def _connect(ray: Any, address: str | None) -> bool:
    """Join or start Ray; whether this is ours to leave."""
    if ray.is_initialized():
        return False
    speak_briefly(ray)
    options = {"include_dashboard": False} if address is None else {}
    try:
        with _own_sigterm():
            ray.init(address=address or "local", log_to_driver=False, logging_level="error", **options)
    except Exception as error:
        where = f"no Ray cluster can be joined at {address}" if address else "Ray cannot be started on this machine"
        raise FedfuseError(f"{where}: {' '.join(str(error).split())}") from error
    return True
