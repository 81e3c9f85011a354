"""Sums of long vectors in double precision, in the order in which they are added."""

from __future__ import annotations

import torch
from torch import Tensor

PIECE = 1 << 15
"""Entries that are brought to double precision at a time: few enough for the processor's cache."""


class Sum:
    """A sum that grows by one vector after another, without a copy of any in double precision.

    Every entry has a sum of its own, so pieces of the vectors could be summed side by side with the same bits.
    """

    def __init__(self, size: int) -> None:
        self.total = torch.zeros(size, dtype=torch.float64)

    def add(self, vector: Tensor, factor: float = 1.0) -> None:
        for piece, addend in zip(self.total.split(PIECE), vector.split(PIECE), strict=True):
            piece.add_(addend.double(), alpha=factor)
