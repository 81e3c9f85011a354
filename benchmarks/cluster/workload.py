"""The federation that is measured: small pictures, a convolutional network, with or without a fusion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.weights import NOTHING, Weights
from fedfuse.experiment.assembly import Built, build
from fedfuse.experiment.config import validate
from fedfuse.federation import Engine
from fedfuse.federation.client_states import ClientStates
from fedfuse.federation.events import EventLog

CLIENTS, EXAMPLES, BATCH, ROUND = 40, 50, 10, 12
"""Registered clients, examples of each, mini-batches, and clients of a round."""
PUBLIC, TEST, STEPS, STEP = 400, 200, 30, 50
"""Public inputs, test inputs, steps of the distillation and inputs of each."""


def built(folder: Path, method: str, engine: Engine | None = None, **settings: object) -> Built:
    """The federation ready for round 1; ``settings`` choose another engine."""
    images = folder / "images.npz"
    if not images.exists():
        random, number = np.random.default_rng(0), CLIENTS * EXAMPLES + PUBLIC + TEST
        inputs = random.integers(0, 256, (number, 3, 32, 32), dtype=np.uint8)
        np.savez(images, inputs=inputs, labels=random.integers(0, 10, number))
    distiller = {"steps": STEPS, "batch_size": STEP, "keep": "last", "evaluate_every": STEPS}
    chosen = {"name": "feddf", "fuse": {"distiller": distiller}} if method == "feddf" else method
    config = validate(
        {
            "data": {"name": "npz", "path": str(images), "test": TEST, "public": PUBLIC, "validation": 0},
            "partition": {"kind": "iid", "clients": CLIENTS},
            "models": {"net": {"arch": "convnet"}},
            "training": {"epochs": 1, "batch_size": BATCH},
            "federation": {"rounds": 100, "clients_per_round": ROUND},
            "evaluation": {"ensemble": False},
            "compute": {"device": "cpu", "threads": 1},
            "method": chosen,
            "engine": {"kind": "local", "workers": 1, **settings},
        }
    )
    return build(config, EventLog(), engine)


@dataclass(frozen=True)
class Echo:
    """Clients that send back what they get: what is left is the way there and back."""

    def work(self, task: Task, _state: Tensors) -> tuple[Update, Tensors]:
        return answer(task), {}


class CannedEngine(Engine):
    """An engine whose clients are ready at once, from the second round on: what is left is the server."""

    def __init__(self) -> None:
        self.ready: dict[int, Weights] = {}

    def train(self, tasks: Sequence[Task], states: ClientStates) -> Iterator[tuple[Update, Tensors]]:
        for task in tasks:
            if task.client not in self.ready:
                self.ready[task.client] = answer(task).weights
            yield replace(answered(task), weights=self.ready[task.client]), states.get(task.client, {})

    def close(self) -> None:
        """Nothing is held."""


def answer(task: Task) -> Update:
    """An update with weights of its own, so that no engine sees that they are what it sent."""
    return replace(answered(task), weights=Weights(task.weights.flat + 1e-3, task.weights.layout))


def answered(task: Task) -> Update:
    """An update without weights."""
    return Update(task.round, task.client, task.prototype, NOTHING, EXAMPLES, metrics={"loss": 1.0, "steps": 1})
