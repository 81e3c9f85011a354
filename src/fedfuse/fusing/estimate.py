"""How long a fusion would take and how much memory: a few inputs are asked about and a few steps taken, timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from fedfuse.core.randomness import Key
from fedfuse.fusing.fuse import Request, compute_of
from fedfuse.fusing.inputs import FuseInputs
from fedfuse.fusing.raw import rows_of
from fedfuse.fusing.student import StudentInputs
from fedfuse.runtime.source import prediction_batch

TIMED_STEPS = 3
BYTES = 4
COPIES = 4
"""Of the student: weights, gradients and Adam's two moments."""


@dataclass(frozen=True)
class Estimate:
    """Seconds and bytes, from a small trial on this machine as it is now."""

    asking: float
    teaching: float
    memory: int

    def facts(self) -> dict[str, str]:
        """For a terminal."""
        return {
            "asking": f"about {_time(self.asking)}",
            "teaching": f"about {_time(self.teaching)}",
            "together": f"about {_time(self.asking + self.teaching)}",
            "memory": f"about {self.memory / 2**20:,.0f} MB above the program's own",
        }


def estimate(request: Request) -> Estimate:
    """Every model answers one batch, and a fresh student takes a few steps; nothing is kept."""
    plan, inputs = request.plan, _inputs(request)
    compute = compute_of(request)
    batch = prediction_batch(compute.device)
    some = rows_of(inputs.raw, slice(0, batch))
    asked = len(inputs) + (0 if request.examples is None else len(request.examples))
    asking = 0.0
    with compute.at_work():
        for member in request.members:
            with member.speaking(compute.device) as voice:
                asking += _timed(lambda voice=voice: voice(some)) * asked / len(some)  # type: ignore[misc]
        step = _timed(_step(request, compute.place(request.blueprint.build(len(request.classes.names), Key(0)))))
    largest = max(member.about.parameters for member in request.members)
    student = sum(p.numel() for p in request.blueprint.build(len(request.classes.names), Key(0)).parameters())
    tables = len(inputs) * (sum(member.about.classes for member in request.members) + 2 * len(request.classes.names))
    pixels = inputs.raw.numel() * inputs.raw.element_size() if isinstance(inputs.raw, torch.Tensor) else 0
    memory = BYTES * (max(largest, COPIES * student) + tables) + pixels
    return Estimate(asking, step * plan.steps, memory)


def _inputs(request: Request) -> FuseInputs:
    """Those of the request, or noise in the place of those that are to be made."""
    if isinstance(request.inputs, FuseInputs):
        return request.inputs
    size = (request.inputs.settings.size, *request.inputs.shape)
    return FuseInputs("noise", torch.randint(256, size, dtype=torch.uint8, generator=Key(0).torch()))


def _step(request: Request, network: nn.Module) -> Callable[[], object]:
    """One step of the student, with answers that mean nothing."""
    compute = compute_of(request)
    shown = StudentInputs(_inputs(request).raw, request.blueprint, compute)
    size = min(request.plan.batch_size, len(shown))
    target = torch.zeros(size, len(request.classes.names), device=compute.device).log_softmax(dim=1)
    distiller = request.plan.distiller(network)
    optimizer = distiller.optimizer.build(network)

    def step() -> None:
        loss = distiller.distance(target, network.train()(shown.inputs(torch.arange(size))))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def _timed(work: Callable[[], object]) -> float:
    """Seconds of one turn, after one that nobody counts."""
    work()
    begin = time.perf_counter()
    for _ in range(TIMED_STEPS):
        work()
    return (time.perf_counter() - begin) / TIMED_STEPS


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
