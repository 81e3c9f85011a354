"""Long vectors as short ones that have about the same angles between them (Charikar, Chen and Farach-Colton, 2002).

    s_b = sum over i with i mod B = b of r_i x_i          r_i = +1 or -1 at random, the same for all

A round can so compare where its clients went without holding their updates, and later rounds with even less. The cosine
of two sketches is off by about 1 / sqrt(B), and exact for vectors of at most B numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from fedfuse.core.randomness import Key

LONGEST, SHORTEST = 1024, 64
NUMBERS = 2**24
"""That all sketches of a round have together, at most, unless they would become too short."""


@dataclass(frozen=True)
class Sketch:
    """One vector: as long as it is compared with others of its round, and as short as it is remembered."""

    whole: Tensor
    short: Tensor


class Sketcher:
    """Makes sketches of vectors of one size, for a round of so many clients; with the same key those of any rounds go
    together."""

    def __init__(self, size: int, clients: int, key: Key) -> None:
        self.length = max(SHORTEST, min(LONGEST, NUMBERS // max(clients, 1)))
        self._signs = _signs(size, key)

    def __call__(self, vector: Tensor) -> Sketch:
        signed = vector * self._signs
        return Sketch(_folded(signed, self.length), _folded(signed, SHORTEST))


@lru_cache(maxsize=8)
def _signs(size: int, key: Key) -> Tensor:
    drawn = torch.randint(0, 2, (size,), generator=key.torch(), dtype=torch.int8)
    return drawn.mul_(2).sub_(1)


def _folded(vector: Tensor, length: int) -> Tensor:
    """The sum of its pieces of this length."""
    whole = len(vector) - len(vector) % length
    if not whole:
        return vector
    folded = vector[:whole].view(-1, length).sum(dim=0)
    folded[: len(vector) - whole] += vector[whole:]
    return folded
