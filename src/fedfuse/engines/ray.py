"""Clients as tasks on Ray: on this machine's cores and GPUs, or on a cluster.

The clients' examples are put into Ray's object store once, so that all processes of a machine read the same memory;
what a round's tasks have in common is put there once per round. A Ray process keeps both, and its resident networks,
between tasks. No more tasks are under way than fit; a task whose process or machine is lost is given out again.
"""

from __future__ import annotations

import os
import time
import warnings
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Literal

from pydantic import Field

from fedfuse.core.errors import ConfigError, FedfuseError, MissingExtraError
from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.part import Part
from fedfuse.engines.parcels import Bytes, Cargo, Parcel, pack, unpack
from fedfuse.engines.worker import answer, warm_up
from fedfuse.engines.workers import ATTEMPTS, exhausted
from fedfuse.federation import Engine
from fedfuse.federation.events import EventLog
from fedfuse.federation.state import ClientStates
from fedfuse.local import Clients


class RayEngineSettings(Part):
    """Clients run on Ray (``pip install 'fedfuse[ray]'``)."""

    kind: Literal["ray"] = "ray"
    address: str | None = Field(
        None, description="null starts Ray on this machine; auto, host:port or ray://host:port joins a cluster"
    )
    workers: int | None = Field(None, ge=1, description="clients at the same time; null: as many as fit")
    cpus: float = Field(1.0, gt=0, description="CPUs that Ray sets aside for one client")
    gpus: float = Field(0.0, ge=0, description="GPUs for one client; 0.5 puts two on each")
    memory: int | None = Field(None, ge=1, description="bytes of memory that Ray sets aside for one client")
    timeout: float | None = Field(None, gt=0, description="seconds after which a client is tried anew")

    def open(self, clients: Clients, log: EventLog) -> Engine:
        device = clients.bank.compute.device.type
        if (device == "cuda") != (self.gpus > 0):
            raise ConfigError(
                f"compute.device is {device} and engine.gpus is {self.gpus:g}; clients on Ray need both cuda and a "
                "share of a GPU, or neither"
            )
        return RayEngine(self, clients, log)

    @property
    def wanted(self) -> dict[str, float]:
        """What one client needs, in Ray's words."""
        amounts = {"CPU": self.cpus, "GPU": self.gpus, "memory": self.memory or 0}
        return {name: amount for name, amount in amounts.items() if amount}


class RayEngine:
    """A connection to Ray for one run."""

    def __init__(self, settings: RayEngineSettings, clients: Clients, log: EventLog) -> None:
        self.settings = settings
        self.log = log
        self._ray = _import()
        self._began_here = _connect(self._ray, settings.address)
        self._room()  # too small a cluster is found now
        self._clients = self._ray.put(pack(clients))
        # max_calls: a process that used a GPU would otherwise end after one client.
        self._work = self._ray.remote(max_retries=0, max_calls=0)(_work).options(
            num_cpus=settings.cpus, num_gpus=settings.gpus, memory=settings.memory
        )

    def train(self, tasks: Sequence[Task], states: ClientStates) -> Iterator[tuple[Update, Tensors]]:
        cargo, room = Cargo(tasks, states), self._room()
        common = self._ray.put(cargo.common())
        waiting, running = deque(tasks), dict[Any, tuple[Task, float]]()
        attempts: Counter[int] = Counter()
        try:
            while waiting or running:
                while waiting and len(running) < room:
                    task = waiting.popleft()
                    reference = self._work.remote([self._clients], [common], cargo.parcel(task))
                    running[reference] = (task, time.monotonic())
                for reference in self._next(running):
                    task, since = running.pop(reference)
                    try:
                        reply = self._reply(reference, since)
                    except _LostError as lost:
                        attempts[task.client] += 1
                        if attempts[task.client] == ATTEMPTS:
                            raise exhausted(task, str(lost)) from None
                        self.log.emit("client_retried", round=task.round, client=task.client, reason=str(lost))
                        waiting.append(task)
                    else:
                        yield reply
        finally:
            for reference in running:
                self._ray.cancel(reference, force=True)

    def close(self) -> None:
        """Leave Ray, which also ends it if this engine started it."""
        if self._began_here:
            self._ray.shutdown()
            self._began_here = False

    def _next(self, running: dict[Any, tuple[Task, float]]) -> list[Any]:
        """Tasks that are done, or those that are late."""
        timeout = self.settings.timeout
        if timeout is None:
            return list(self._ray.wait(list(running))[0])
        oldest = min(since for _, since in running.values())
        done, _ = self._ray.wait(list(running), timeout=max(0.0, oldest + timeout - time.monotonic()))
        return done or [r for r, (_, since) in running.items() if time.monotonic() - since >= timeout]

    def _reply(self, reference: Any, since: float) -> tuple[Update, Tensors]:
        """What came of a task; an error of the client's own is raised here as it was there."""
        try:
            parcel = self._ray.get(reference, timeout=0 if self.settings.timeout else None)
        except self._ray.exceptions.GetTimeoutError:
            self._ray.cancel(reference, force=True)
            raise _LostError(f"it gave no answer in {time.monotonic() - since:.0f} s") from None
        except self._ray.exceptions.RayError as error:
            raise _LostError(f"Ray lost it ({type(error).__name__})") from None
        reply = unpack(Parcel(parcel.note, _copies(parcel.tensors)))
        if isinstance(reply, Exception):
            raise reply
        return reply  # type: ignore[no-any-return]

    def _room(self) -> int:
        """How many clients fit into the cluster as it is now."""
        if self.settings.workers is not None:
            return self.settings.workers
        wanted = self.settings.wanted
        machines = [machine["Resources"] for machine in self._ray.nodes() if machine["Alive"]]
        room = sum(min(int(has.get(name, 0) / amount) for name, amount in wanted.items()) for has in machines)
        if room == 0:
            needs = ", ".join(f"{amount:g} {name}" for name, amount in wanted.items())
            raise ConfigError(
                f"engine: a client wants {needs}, but no machine of the Ray cluster has that; ask for less, or set "
                "engine.workers to wait for machines that are yet to come"
            )
        return room


class _LostError(Exception):
    """A task has no result; the text says why."""


def _import() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read at import
    try:
        import ray
    except ImportError:
        raise MissingExtraError("engine ray", "ray") from None
    return ray


def _connect(ray: Any, address: str | None) -> bool:
    """Join or start Ray; whether this is ours to leave."""
    if ray.is_initialized():
        return False
    options = {"include_dashboard": False} if address is None else {}
    try:
        ray.init(address=address or "local", log_to_driver=False, logging_level="error", **options)
    except Exception as error:
        where = f"no Ray cluster can be joined at {address}" if address else "Ray cannot be started on this machine"
        raise FedfuseError(f"{where}: {' '.join(str(error).split())}") from error
    return True


def _work(clients: list[Any], common: list[Any], parcel: Parcel) -> Parcel:
    """The Ray task. References come in lists, because Ray replaces bare ones by what they stand for, every time."""
    return answer(_kept_clients(clients[0]), Parcel(parcel.note, _copies(parcel.tensors)), _kept_common(common[0]))


@lru_cache(maxsize=1)
def _kept_clients(reference: Any) -> Clients:
    warm_up()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not writable", category=UserWarning)  # nobody writes to examples
        return unpack(_import().get(reference))  # type: ignore[no-any-return]


@lru_cache(maxsize=1)
def _kept_common(reference: Any) -> list[Bytes]:
    return _copies(_import().get(reference))


def _copies(tensors: Sequence[Bytes]) -> list[Bytes]:
    """Out of the object store, whose memory cannot be written to."""
    return [tensor.copy() for tensor in tensors]
