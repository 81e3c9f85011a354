"""Min-max (Shejwalkar and Houmansadr, NDSS 2021): as far off as possible without being the farthest from anybody.

x_k = mean - gamma std,   gamma = max{ gamma : max_j |x_k - x_j| <= max_{i,j} |x_i - x_j| }
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from torch import Tensor

from fedfuse.core.weights import Weights
from fedfuse.federation.attack import Attack, Situation
from fedfuse.testing.attacks.moves import moved_by, moves_of

HALVINGS = 30


class MinMax(Attack):
    """All who attack send the same weights, on the edge of the honest ones."""

    kind: Literal["min_max"] = "min_max"
    bends: ClassVar[str] = "weights"
    knows_others: ClassVar[bool] = True

    def weights(self, honest: Weights, situation: Situation) -> Weights:
        moves = moves_of(situation.others, situation.sent)
        return moved_by(honest, situation.sent, farthest(moves))


def farthest(moves: Tensor) -> Tensor:
    """Along minus the standard deviation, by halving the interval of gamma."""
    mean, direction = moves.mean(dim=0), -moves.std(dim=0, unbiased=False)
    limit = torch.cdist(moves, moves).max()
    low, high = 0.0, 50.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        inside = bool((moves - mean - middle * direction).norm(dim=1).max() <= limit)
        low, high = (middle, high) if inside else (low, middle)
    return mean + low * direction
