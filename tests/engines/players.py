"""Clients for many federations at once, so that one engine serves all tests of a module, and traps that end workers."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.randomness import Key
from fedfuse.experiment.assembly import build
from fedfuse.federation import Engine, Federation, Snapshot
from fedfuse.federation.client import Clients
from fedfuse.federation.client_states import ClientStates
from fedfuse.federation.events import EventLog
from fedfuse.methods import METHODS
from fedfuse.runtime.pool import Pool
from tests.helpers import played, tiny_config, without_seconds


@dataclass(frozen=True)
class Everyone:
    """The clients of every method; each method's prototype bears the method's name, which tells them apart."""

    clients: Mapping[str, Clients]
    traps: Path

    def groups(self, tasks: Sequence[Task]) -> list[list[Task]]:
        return self.clients[tasks[0].prototype].groups(tasks)

    def work_together(self, tasks: Sequence[Task], states: ClientStates) -> list[tuple[Update, Tensors]]:
        for task in tasks:
            spring(self.traps / str(task.client))
        return self.clients[tasks[0].prototype].work_together(tasks, states)

    def examples_of(self, task: Task) -> int:
        return self.clients[task.prototype].examples_of(task)

    def lay(self, who: int | str, what: str, times: int = 1) -> None:
        """Who plays the client, or does that work, the next ``times`` times gets a signal or an error by its name, or
        loses its machine."""
        lay(self.traps / str(who), what, times)


@dataclass(frozen=True)
class Trapped:
    """The server's work, with a trap before it."""

    work: Callable[[Any], Any]
    trap: Path

    def __call__(self, argument: Any) -> Any:
        spring(self.trap)
        return self.work(argument)


class TrappedEngine(Engine):
    """An engine with a trap, named by what is done, before everything that the server has it do."""

    def __init__(self, inner: Engine, traps: Path) -> None:
        self.inner, self.traps = inner, traps

    def train(self, tasks: Sequence[Task], states: ClientStates) -> Iterator[tuple[Update, Tensors]]:
        return self.inner.train(tasks, states)

    def examples_of(self, tasks: Sequence[Task]) -> Sequence[int] | None:
        return self.inner.examples_of(tasks)

    def pool(self, number: int) -> Pool:
        return TrappedHands(self.inner.pool(number), self.traps)

    def close(self) -> None:
        self.inner.close()


@dataclass(frozen=True)
class TrappedHands(Pool):
    inner: Pool
    traps: Path

    def map(self, what: str, work: Any, items: Any) -> Any:
        return self.inner.map(what, Trapped(work, self.traps / what), items)

    def run(self, what: str, work: Any, progress: Any) -> Any:
        return self.inner.run(what, Trapped(work, self.traps / what), progress)


def lay(trap: Path, what: str, times: int) -> None:
    trap.write_text(f"{what} {times}")


def spring(trap: Path) -> None:
    """Be caught, if there is a trap and no other process was first."""
    mine = trap.with_name(f"{trap.name} of {os.getpid()}")
    try:
        trap.rename(mine)
    except FileNotFoundError:
        return
    what, _, times = mine.read_text().partition(" ")
    mine.unlink()
    if int(times) > 1:
        lay(trap, what, int(times) - 1)
    if what == "ZeroDivisionError":
        raise ZeroDivisionError("a mistake of its own")
    if what == "machine":
        os.kill(os.getppid(), signal.SIGKILL)  # Ray's own process on this machine
        what = "SIGKILL"
    os.kill(os.getpid(), signal.Signals[what])


def federations() -> dict[str, Federation]:
    """A tiny federation of every method, in-process."""
    return {method: federation(method) for method in METHODS}


def federation(method: str) -> Federation:
    models = {method: {"arch": "mlp", "hidden": [6]}}
    return build(tiny_config(method, models=models), EventLog()).federation


def result(one: Federation, **changes: object) -> tuple[object, ...]:
    """Everything that a federation's rounds come to, in bytes."""
    return bits(played(replace(one, **changes), rounds=2))


def bits(snapshot: Snapshot) -> tuple[object, ...]:
    tensors = {("weights", name): weights.flat for name, weights in snapshot.server.weights.items()}
    tensors |= {("memory", part, name): t for part, all_ in snapshot.server.memory.items() for name, t in all_.items()}
    tensors |= {("client", who, name): t for who, all_ in snapshot.clients.items() for name, t in all_.items()}
    history = without_seconds([record.to_json() for record in snapshot.server.history])
    return {key: (t.dtype, t.shape, t.numpy().tobytes()) for key, t in tensors.items()}, history


def first_clients(one: Federation, number: int) -> list[int]:
    """Clients that take part in round 1."""
    return one.chosen(Key(0).child("round", 1, "sample"))[:number]
