"""What was lost when a change was written with a rank."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from fedfuse.fusing.adapters.low_rank import Factors


@dataclass(frozen=True)
class Loss:
    """What all layers together lost when they were written with a rank."""

    base: str
    """The model that the adapter is for."""
    rank: int
    norm: float
    left_out: float
    worst: str
    """The layer that lost the largest share of its change."""
    worst_share: float

    @staticmethod
    def of(base: str, rank: int, layers: Mapping[str, Factors]) -> Loss:
        shares = {name: one.left_out / one.norm if one.norm else 0.0 for name, one in layers.items()}
        worst = max(shares, key=shares.__getitem__)
        norm = math.hypot(*(one.norm for one in layers.values()))
        left_out = math.hypot(*(one.left_out for one in layers.values()))
        return Loss(base, rank, norm, left_out, worst, shares[worst])

    @property
    def share(self) -> float:
        return self.left_out / self.norm if self.norm else 0.0

    def __str__(self) -> str:
        whole = f"written as LoRA of rank {self.rank}: of the change from the base, whose norm is {self.norm:.4g},"
        if self.share < 1e-6:
            return f"{whole} nothing is left out"
        return f"{whole} {100 * self.share:.2f} % is left out ({100 * self.worst_share:.2f} % in {self.worst})"
