"""Where to clients move the weights: who goes against the others, or turns round, counts for nothing.

    c_k = cos(m_k, sum of the others' m_j / |m_j|)          beside the others
    s_k = cos(m_k, sum of its own earlier m_k / |m_k|)      beside itself

A client is judged by three numbers, beside those that the others have of the same kind:

    now      c_k of this round
    so far   the mean of its c in all clear rounds, this one too if it is, each weighted by how clear it was
    itself   s_k

It stands out if a number is clearly negative (below -0.2) and far below the others' (its lower fence, core/fences.py),
while three quarters of them are positive. A round is as clear as the lower quartile of its clients' c, and not at all
if that is negative. Late in a training few rounds are, because honest updates then nearly cancel: so what clear rounds
have shown is remembered, and nobody who went against the others there is believed again merely because honest clients
begin to differ. An honest client goes on where it went, whatever the others do; whoever begins to lie later turns
round. Of its own moves only those that counted are remembered.

In a round of few clients, others who are not in it count as if they went on where they went (``Courses.absent``). With
fewer than four others, of both kinds together, nobody is judged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from fedfuse.core.fences import FEW, lower_fences
from fedfuse.core.messages import Tensors
from fedfuse.federation.sketches import Sketch

LEAST_SPREAD = 0.1
"""Cosines that differ by less are alike."""
AGAINST = -0.2
"""A cosine that is clearly negative: honest clients with few classes may well be at right angles to the others."""
MOST_KNOWN = 1024
"""Clients whose courses are remembered: those heard last."""
COMPANY = 16
"""Clients who are not in a round of few that they are compared with: those heard last."""
COURSES = "courses"
Cosines = Mapping[int, float]
"""By client."""


@dataclass(frozen=True)
class Course:
    """What is remembered of one client: how clear its rounds were, the sum of its cosines in them, where it went."""

    clarity: float
    total: float
    way: Tensor

    def after(self, clarity: float, cosine: float, move: Tensor | None) -> Course:
        """One more round; ``move`` if it counted."""
        way = self.way if move is None else self.way + _direction(move.double())
        return Course(self.clarity + clarity, self.total + clarity * cosine, way)


@dataclass(frozen=True)
class Courses:
    """Those of one prototype's clients, by client, in the order in which they were heard last."""

    known: Mapping[int, Course] = field(default_factory=dict)

    @staticmethod
    def of(memory: Tensors) -> Courses:
        rows = memory.get(COURSES, torch.empty(0, 3, dtype=torch.float64))
        return Courses({int(row[0]): Course(float(row[1]), float(row[2]), row[3:]) for row in rows})

    @property
    def memory(self) -> Tensors:
        rows = [
            torch.cat([torch.tensor([client, own.clarity, own.total], dtype=torch.float64), own.way])
            for client, own in self.known.items()
        ]
        return {COURSES: torch.stack(rows)} if rows else {}

    def absent(self, clients: Collection[int]) -> dict[int, Tensor]:
        """Where others went who are not among these clients of a round, if they are few."""
        if len(clients) > FEW:
            return {}
        ways = {client: own.way for client, own in self.known.items() if client not in clients and own.way.any()}
        return dict(list(ways.items())[-COMPANY:])

    def after(self, sketches: Mapping[int, Sketch], cosines: Cosines, ignored: Iterable[int]) -> Courses:
        """One more round, and who did not count in it; where nobody could be compared, nobody has a cosine."""
        known, left_out, clarity = dict(self.known), set(ignored), clarity_of(cosines)
        for client, sketch in sketches.items():
            before = known.pop(client, None) or Course(0.0, 0.0, torch.zeros(len(sketch.short), dtype=torch.float64))
            move = None if client in left_out else sketch.short
            known[client] = before.after(clarity, cosines.get(client, 0.0), move)
        return Courses(dict(list(known.items())[-MOST_KNOWN:]))

    def means(self, cosines: Cosines) -> dict[int, float]:
        """Of each client's cosines in all rounds and these, by how clear they were; without a clear one it has none."""
        now, means = clarity_of(cosines), {}
        for client, cosine in cosines.items():
            own = self.known.get(client)
            clarity, total = (own.clarity, own.total) if own else (0.0, 0.0)
            if clarity + now > 0:
                means[client] = (total + now * cosine) / (clarity + now)
        return means

    def turns(self, sketches: Mapping[int, Sketch]) -> dict[int, float]:
        """The cosine of each client's move with where it went before; those who never counted have none."""
        known = {client: self.known[client].way for client in sketches if client in self.known}
        return {
            client: float(_direction(sketches[client].short.double()) @ _direction(way))
            for client, way in known.items()
            if way.any()
        }


@dataclass(frozen=True)
class Verdict:
    """Who stands out by its direction, with the reason, and what it was told by."""

    against: Mapping[int, str]
    sketches: Mapping[int, Sketch]
    cosines: Cosines
    before: Courses

    def courses(self, ignored: Iterable[int]) -> Courses:
        """What is remembered of everybody, of whom these did not count in the round."""
        return self.before.after(self.sketches, self.cosines, ignored)


def judged(
    sketches: Mapping[int, Sketch], courses: Courses, in_one_round: float = AGAINST, so_far: float = AGAINST
) -> Verdict:
    """One round of clients whose moves can be compared, and what a cosine and the mean of several must be below."""
    absent = courses.absent(sketches)
    if len(sketches) + len(absent) <= FEW:
        return Verdict({}, sketches, {}, courses)
    here = {client: sketch.short if absent else sketch.whole for client, sketch in sketches.items()}
    cosines = cosines_of({**here, **absent})
    found = chain(
        _below(courses.turns(sketches), in_one_round, "turns round: its cosine with its own earlier updates is"),
        _below(courses.means(cosines), so_far, "goes against the others: its mean cosine in clear rounds is"),
        _below(cosines, in_one_round, "goes against the others: its cosine is"),
    )
    return Verdict({client: why for client, why in found if client in sketches}, sketches, cosines, courses)


def cosines_of(moves: Mapping[int, Tensor]) -> dict[int, float]:
    """Of each client's move with the sum of the others' directions."""
    directions = torch.stack([_direction(move.double()) for move in moves.values()])
    others = directions.sum(dim=0) - directions
    cosines = (directions * others).sum(dim=1) / others.norm(dim=1).clamp_min(1e-30)
    return dict(zip(moves, cosines.tolist(), strict=True))


def clarity_of(cosines: Cosines) -> float:
    """How much three quarters of a round's clients go one way, at least."""
    return max(0.0, float(np.quantile(list(cosines.values()), 0.25))) if cosines else 0.0


def _below(cosines: Cosines, least: float, what: str) -> Iterable[tuple[int, str]]:
    """Those far below the others, and what is said of them."""
    if len(cosines) <= FEW:
        return
    fences, quartiles = lower_fences(list(cosines.values()), LEAST_SPREAD)
    for (client, own), fence, others in zip(cosines.items(), fences, quartiles, strict=True):
        if own < min(least, fence) and others > 0:
            yield client, f"{what} {own:.2f}, that of three quarters of the others above {others:.2f}"


def _direction(move: Tensor) -> Tensor:
    direction: Tensor = move / move.norm().clamp_min(1e-30)
    return direction
