"""Long vectors as short ones that have about the same angles between them (Charikar, Chen and Farach-Colton, 2002).

    s_b = sum over i with i mod B = b of r_i x_i          r_i = +1 or -1 at random, the same for all

A round can so compare where its clients went without holding their updates. The cosine of two sketches is off by about
1 / sqrt(B). Vectors of at most B numbers are their own sketches.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fedfuse.core.randomness import Key

LONGEST, SHORTEST = 1024, 64
NUMBERS = 2**24
"""That all sketches of a round have together, at most, unless they would become too short."""


class Sketcher:
    """Makes sketches of vectors of one length, for a round of so many clients."""

    def __init__(self, size: int, clients: int, key: Key) -> None:
        self.length = max(SHORTEST, min(LONGEST, NUMBERS // max(clients, 1)))
        self._signs: Tensor | None = None
        if size > self.length:
            drawn = torch.randint(0, 2, (size,), generator=key.torch(), dtype=torch.int8)
            self._signs = drawn.mul_(2).sub_(1)

    def __call__(self, vector: Tensor) -> Tensor:
        if self._signs is None:
            return vector.clone()
        signed = vector * self._signs
        whole = len(signed) - len(signed) % self.length
        sketch = signed[:whole].view(-1, self.length).sum(dim=0)
        sketch[: len(signed) - whole] += signed[whole:]
        return sketch
