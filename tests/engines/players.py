"""Clients for many federations at once, so that one engine serves all tests of a module, and traps that end workers."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.randomness import Key
from fedfuse.experiment import build
from fedfuse.federation import Federation, Snapshot
from fedfuse.federation.events import EventLog
from fedfuse.local import Clients
from fedfuse.methods import METHODS
from tests.helpers import played, tiny_config, without_seconds


@dataclass(frozen=True)
class Everyone:
    """The clients of every method; each method's prototype bears the method's name, which tells them apart."""

    clients: Mapping[str, Clients]
    traps: Path

    def work(self, task: Task, state: Tensors) -> tuple[Update, Tensors]:
        trap = self.traps / str(task.client)
        if trap.exists():
            name, _, times = trap.read_text().partition(" ")
            if int(times) > 1:
                trap.write_text(f"{name} {int(times) - 1}")
            else:
                trap.unlink()
            if name == "ZeroDivisionError":
                raise ZeroDivisionError("a mistake of the client's own")
            if name == "machine":
                os.kill(os.getppid(), signal.SIGKILL)  # Ray's own process on this machine
                name = "SIGKILL"
            os.kill(os.getpid(), signal.Signals[name])
        return self.clients[task.prototype].work(task, state)

    def lay(self, client: int, what: str, times: int = 1) -> None:
        """Who plays the client the next ``times`` times gets a signal or an error by its name, or loses its machine."""
        (self.traps / str(client)).write_text(f"{what} {times}")


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
