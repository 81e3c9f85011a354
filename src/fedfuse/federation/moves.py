"""How far and where to a round's clients moved the weights that they were sent (``federation.moves``).

Beside the other clients of its prototype, by Tukey's fences (core/fences.py):

    length      of the parameters' move, of the buffers', and of what is as long as the parameters (a control variate):
                one beyond its fence is scaled down to it, one far beyond to the others' median, for whoever merges the
                update and whomever it teaches
    direction   who goes against the others, or turns round, counts for nothing (directions.py)
    fit         so does whose update is far from what it told the objective of it (``Objective.fit``)

Where nobody stands out, nothing is changed at all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from fedfuse.core.fences import FEW, counted, lower_fences
from fedfuse.core.messages import Task, Update
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.federation.directions import Courses, judged
from fedfuse.federation.recipe import LOCAL
from fedfuse.federation.settings import Trust
from fedfuse.federation.sketches import Sketch, Sketcher
from fedfuse.parts.local import Objective

PARAMETERS, BUFFERS = "parameters", "buffers"
LEAST_SPREAD = 0.1
"""Fits that differ by less are alike."""
NOTHING_KNOWN: Mapping[str, Courses] = {}
Lengths = dict[str, dict[int, float]]
"""By what moved, and by client."""


@dataclass(frozen=True)
class Judged:
    """What becomes of a round's moves: by client, factors of what is too long, and who goes against the others."""

    factors: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    shortened: Mapping[int, str] = field(default_factory=dict)
    """What the log says of them."""
    against: Mapping[int, str] = field(default_factory=dict)
    courses: Mapping[str, Courses] = field(default_factory=dict)
    """Where to clients have gone by now, by prototype."""

    def __bool__(self) -> bool:
        return bool(self.factors or self.against)

    def within_bounds(self, update: Update, sent: Weights) -> Update:
        """The update as it counts; the same object if nothing of it is too long."""
        factors = self.factors.get(update.client)
        if not factors:
            return update
        extras = {name: tensor * factors.get(name, 1.0) for name, tensor in update.extras.items() if name in factors}
        return replace(update, weights=_nearer(update.weights.here, sent, factors), extras={**update.extras, **extras})


class Moves:
    """One round's, of as many clients as have tasks."""

    def __init__(self, tasks: Mapping[int, Task], objective: Objective, key: Key, trust: Trust) -> None:
        self.tasks, self.objective, self.key, self.is_bounded = tasks, objective, key, trust == "bounded"
        self.lengths: dict[str, Lengths] = defaultdict(lambda: defaultdict(dict))
        self.fits: dict[str, dict[int, float]] = defaultdict(dict)
        self.sketches: dict[str, dict[int, Sketch]] = defaultdict(dict)
        self._sketchers: dict[str, Sketcher] = {}
        self._sent: dict[str, Weights] = {}

    def take(self, update: Update) -> None:
        """One more of the round's updates; weights of other widths than were sent have gone nowhere."""
        task = self.tasks[update.client]
        sent = task.weights
        if not self.is_bounded or not update.weights or update.weights.layout != sent.layout:
            return
        flat = update.weights.flat
        move, count, lengths = flat - sent.flat, sent.layout.parameter_count, self.lengths[update.prototype]
        lengths[PARAMETERS][update.client] = _length(move[:count])
        if len(move) > count:
            lengths[BUFFERS][update.client] = _length(move[count:])
        for name, tensor in update.extras.items():
            if tensor.is_floating_point() and tensor.shape == (count,):
                lengths[name][update.client] = _length(tensor)
        if (fit := self.objective.fit(task.of(LOCAL), update.of(LOCAL))) is not None:
            self.fits[update.prototype][update.client] = fit
        if sent is self._sent.setdefault(update.prototype, sent):  # else units of one place need not be the same unit
            self.sketches[update.prototype][update.client] = self._sketcher(update.prototype, count)(move[:count])

    def _sketcher(self, prototype: str, size: int) -> Sketcher:
        if prototype not in self._sketchers:
            self._sketchers[prototype] = Sketcher(size, len(self.tasks), self.key.child(prototype))
        return self._sketchers[prototype]

    def judged(self, clients: Collection[int], courses: Mapping[str, Courses] = NOTHING_KNOWN) -> Judged:
        """What becomes of these clients' moves; ``courses`` says where to those of a prototype have gone so far."""
        factors: dict[int, dict[str, float]] = {}
        shortened: dict[int, str] = {}
        against: dict[int, str] = {}
        after: dict[str, Courses] = {}
        for prototype, lengths in self.lengths.items():
            for what, all_lengths in lengths.items():
                own = {client: length for client, length in all_lengths.items() if client in clients}
                for client, length in _beyond(own).items():
                    factors.setdefault(client, {})[what] = length / own[client]
                    shortened.setdefault(client, f"{what}: moved {own[client]:.3g}, counts as {length:.3g}")
            sketches = {client: sketch for client, sketch in self.sketches[prototype].items() if client in clients}
            verdict = judged(sketches, courses.get(prototype, Courses()))
            fits = {client: fit for client, fit in self.fits[prototype].items() if client in clients}
            against |= {**_unfit(fits), **verdict.against}
            after[prototype] = verdict.courses
        return Judged(factors, shortened, against, after)


def _beyond(lengths: Mapping[int, float]) -> dict[int, float]:
    """What the lengths of those count as that are beyond their fences."""
    sizes = dict(zip(lengths, counted(list(lengths.values())), strict=True))
    return {client: size for client, size in sizes.items() if size < lengths[client]}


def _unfit(fits: Mapping[int, float]) -> dict[int, str]:
    """Who fits far worse than the others, and what is said of it."""
    if len(fits) <= FEW:
        return {}
    fences, quartiles = lower_fences(list(fits.values()), LEAST_SPREAD)
    return {
        client: f"what it says of its update fits it by {own:.2f}, that of three quarters of the others by {others:.2f}"
        for (client, own), fence, others in zip(fits.items(), fences, quartiles, strict=True)
        if own < fence
    }


def _nearer(brought: Weights, sent: Weights, factors: Mapping[str, float]) -> Weights:
    """Weights on the way from those that were sent to those that were brought."""
    parameters = sent.parameters + factors.get(PARAMETERS, 1.0) * (brought.parameters - sent.parameters)
    buffers = sent.buffers + factors.get(BUFFERS, 1.0) * (brought.buffers - sent.buffers)
    kept = brought.parameters if PARAMETERS not in factors else parameters
    return Weights(torch.cat([kept, brought.buffers if BUFFERS not in factors else buffers]), brought.layout)


def _length(tensor: Tensor) -> float:
    return float(torch.linalg.vector_norm(tensor))
