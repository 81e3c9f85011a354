"""Which runs there are, and what befalls them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from fedfuse.methods import METHODS
from tests.reliability.kills.legs import HAVE_WORKERS, SIMULATED

FEW, MANY = 4, 100_000
"""Clients of a run."""
HOWS = ("process", "group", "asked", "worker")
"""SIGKILL for the run's process, or for its group; SIGTERM; SIGKILL for one of its workers, which does not end it."""
RAY, FLOWER, CROWD = (5, 15), (2, 7, 12, 17), (19,)
"""Of twenty trials, those on Ray and on Flower, if they are there, and with very many clients."""


@dataclass(frozen=True)
class Kill:
    """How a run on an engine is ended: after this share of what is left to do, and some seconds more."""

    engine: str
    how: str
    moment: float
    delay: float


@dataclass(frozen=True)
class Trial:
    """A run, the kills that befall it, and the engine that finishes it."""

    number: int
    method: str
    stack: bool | str
    clients: int
    kills: tuple[Kill, ...]
    last: str

    @property
    def engines(self) -> list[str]:
        return list(dict.fromkeys([*(kill.engine for kill in self.kills), self.last]))


def plan(number: int, seed: int, engines: Sequence[str]) -> Trial:
    """The same trial for the same numbers and engines."""
    draw = random.Random(f"{seed} {number}")
    methods = list(METHODS)
    random.Random(seed).shuffle(methods)
    place, plain = number % 20, [engine for engine in engines if engine in SIMULATED and engine != "ray"]
    first = "ray" if place in RAY and "ray" in engines else draw.choice(plain)
    if place in FLOWER and "flower" in engines:
        first, plain = "flower", ["flower"]  # what clients keep is on its nodes, where no other engine finds it
    many = place in CROWD
    return Trial(
        number,
        method="scaffold" if many else methods[number % len(methods)],
        stack=draw.choice(["auto", False]),
        clients=MANY if many else FEW,
        kills=tuple(_kill(draw, draw.choice(plain) if again else first) for again in range(draw.randint(1, 3))),
        last=draw.choice(plain),
    )


def _kill(draw: random.Random, engine: str) -> Kill:
    hows = [how for how in HOWS if how != "worker" or engine in HAVE_WORKERS]
    return Kill(engine, draw.choice(hows), draw.random(), draw.uniform(0.0, 0.01))
