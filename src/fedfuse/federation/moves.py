"""How far and where to a round's clients moved the weights that they were sent (``federation.moves``).

Beside the other clients, by Tukey's fences (core/fences.py):

    length      of the parameters' move, of the buffers', and of what is as long as the parameters (a control variate):
                one beyond its fence is scaled down to it, one far beyond to the others' median, for whoever merges the
                update and whomever it teaches
    direction   who goes against the others, or turns round, counts for nothing (directions.py); the same by what its
                model says about public inputs, where a fusion asks all models about them (asking.py)
    fit         so does whose update is far from what it told the objective of it (``Objective.fit``)

Where nobody stands out, nothing is changed at all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from fedfuse.core.fences import FEW, lower_fences
from fedfuse.core.messages import Task, Update
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Layout, Weights
from fedfuse.federation.asking import Asked
from fedfuse.federation.directions import Courses, Verdict, judged
from fedfuse.federation.lengths import NOBODY, LastLengths, beyond
from fedfuse.federation.memories import Memories
from fedfuse.federation.recipe import LOCAL
from fedfuse.federation.settings import Trust
from fedfuse.federation.sketches import Sketch, Sketcher
from fedfuse.parts.local import Objective

PARAMETERS, BUFFERS = "parameters", "buffers"
LEAST_SPREAD = 0.1
"""Fits that differ by less are alike."""
MOVES, ANSWERS, LENGTHS = "moves", "answers", "lengths"
"""Where it is remembered where to clients have gone: below the first by prototype; in what they say, all of them. Below
the last, by prototype, how far."""
Lengths = dict[str, dict[int, float]]
"""By prototype, and by client."""


@dataclass(frozen=True)
class Known:
    """What is remembered: where to clients have gone, by these addresses, and how far last, by prototype."""

    courses: Mapping[str, Courses] = field(default_factory=dict)
    lengths: Mapping[str, LastLengths] = field(default_factory=dict)

    @staticmethod
    def of(memories: Memories, prototypes: Iterable[str]) -> Known:
        names = sorted(prototypes)
        courses = {at: Courses.of(memories.of(at)) for at in (ANSWERS, *map(address, names))}
        return Known(courses, {name: LastLengths.of(memories.of(f"{LENGTHS}/{name}")) for name in names})

    def keep(self, memories: Memories) -> None:
        for at, courses in self.courses.items():
            memories.keep(at, courses.memory)
        for prototype, lengths in self.lengths.items():
            memories.keep(f"{LENGTHS}/{prototype}", lengths.memory)


NOTHING_KNOWN = Known()


@dataclass(frozen=True)
class Judged:
    """What becomes of a round's moves: by client, factors of what is too long, and who goes against the others."""

    factors: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    shortened: Mapping[int, str] = field(default_factory=dict)
    """What the log says of them."""
    against: Mapping[int, str] = field(default_factory=dict)
    known: Known = NOTHING_KNOWN
    """Where to clients have gone by now, and how far last."""

    def __bool__(self) -> bool:
        return bool(self.factors or self.against)

    def within_bounds(self, update: Update, sent: Weights) -> Update:
        """The update as it counts; the same object if nothing of it is too long."""
        factors = self.factors.get(update.client)
        if not factors:
            return update
        extras = {name: tensor * factors.get(name, 1.0) for name, tensor in update.extras.items() if name in factors}
        nearer = _nearer(update.weights.here, _begun(sent, update.weights.layout), factors)
        return replace(update, weights=nearer, extras={**update.extras, **extras})


class Moves:
    """One round's, of as many clients as have tasks; ``asked`` is where a fusion asks models about public inputs."""

    def __init__(
        self, tasks: Mapping[int, Task], objective: Objective, key: Key, trust: Trust, asked: Asked | None = None
    ) -> None:
        self.tasks, self.objective, self.key, self.is_bounded = tasks, objective, key, trust == "bounded"
        self.asked = asked
        self.lengths: dict[str, Lengths] = defaultdict(lambda: defaultdict(dict))
        self.fits: dict[str, dict[int, float]] = defaultdict(dict)
        self.sketches: dict[str, dict[int, Sketch]] = defaultdict(dict)
        self._sketchers: dict[str, Sketcher] = {}
        self._of_layers = set[str]()
        """Whose updates are single layers, another one in every round."""
        self._sent: dict[str, Weights] = {}

    def take(self, update: Update) -> None:
        """One more of the round's updates."""
        if not self.is_bounded or not update.weights:
            return
        task, layout = self.tasks[update.client], update.weights.layout
        sent, count = _begun(task.weights, layout), layout.parameter_count
        move = update.weights.flat - sent.flat
        if task.weights.layout != layout:
            self._of_layers.add(address(update.prototype))
        self._note(update, PARAMETERS, move[:count])
        if len(move) > count:
            self._note(update, BUFFERS, move[count:])
        for name, tensor in update.extras.items():
            if tensor.is_floating_point() and tensor.shape == (count,):
                self._note(update, name, tensor)
        if (fit := self.objective.fit(task.of(LOCAL), update.of(LOCAL))) is not None:
            self.fits[update.prototype][update.client] = fit
        if task.weights is self._sent.setdefault(update.prototype, task.weights):  # else units need not be the same
            self.sketches[update.prototype][update.client] = self._sketcher(update.prototype, count)(move[:count])
        if self.asked:
            self.asked.take(update, task.weights)

    def _note(self, update: Update, what: str, move: Tensor) -> None:
        self.lengths[what][update.prototype][update.client] = float(torch.linalg.vector_norm(move))

    def _sketcher(self, prototype: str, size: int) -> Sketcher:
        if prototype not in self._sketchers:
            self._sketchers[prototype] = Sketcher(size, len(self.tasks), self.key.child(prototype))
        return self._sketchers[prototype]

    def judged(self, clients: Collection[int], known: Known = NOTHING_KNOWN) -> Judged:
        """What becomes of these clients' moves, beside what is known of theirs and of others' so far."""
        factors: dict[int, dict[str, float]] = {}
        shortened: dict[int, str] = {}
        against: dict[int, str] = {}
        last: Mapping[str, LastLengths] = {}
        for what, lengths in self.lengths.items():
            own = {name: {c: length for c, length in group.items() if c in clients} for name, group in lengths.items()}
            before = self._last(own, known) if what == PARAMETERS else {}
            counted = beyond(own, before)
            last = {**last, **{name: lengths.after(own[name], counted) for name, lengths in before.items()}}
            went = {client: length for group in own.values() for client, length in group.items()}
            for client, length in counted.items():
                factors.setdefault(client, {})[what] = length / went[client]
                shortened.setdefault(client, f"{what}: moved {went[client]:.3g}, counts as {length:.3g}")
        for fits in self.fits.values():
            against |= _unfit({client: fit for client, fit in fits.items() if client in clients})
        verdicts = self._verdicts(clients, known)
        for verdict in verdicts.values():
            against |= verdict.against
        if self.asked:
            against |= self.asked.guessing(clients)
        courses = {at: verdict.courses(against) for at, verdict in verdicts.items() if at not in self._of_layers}
        return Judged(factors, shortened, against, Known(courses, last))

    def _last(self, prototypes: Iterable[str], known: Known) -> dict[str, LastLengths]:
        """How far clients went when they were heard last, unless they send another layer in every round."""
        return {name: known.lengths.get(name, NOBODY) for name in prototypes if address(name) not in self._of_layers}

    def _verdicts(self, clients: Collection[int], known: Known) -> dict[str, Verdict]:
        """By directions: of each prototype's clients, and of all that are asked."""
        verdicts = {}
        for prototype, sketches in self.sketches.items():
            at = address(prototype)
            before = Courses() if at in self._of_layers else known.courses.get(at, Courses())
            own = {client: sketch for client, sketch in sketches.items() if client in clients}
            verdicts[at] = judged(own, before)
        if self.asked:
            verdicts[ANSWERS] = self.asked.judged(clients, known.courses.get(ANSWERS, Courses()))
        return verdicts


def address(prototype: str) -> str:
    """Where it is remembered where to its clients have gone."""
    return f"{MOVES}/{prototype}"


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


def _begun(sent: Weights, layout: Layout) -> Weights:
    """Of what a client was sent, what it answers with: all, one layer, or none of it if it was to keep that itself."""
    if sent.layout == layout:
        return sent
    wanted, there = dict(layout.parameters + layout.buffers), sent.layout.by_name
    if all(name in there and there[name].shape == shape for name, shape in wanted.items()):
        return Weights(torch.cat([sent[name].reshape(-1) for name in wanted]), layout)
    return Weights(torch.zeros(layout.size), layout)
