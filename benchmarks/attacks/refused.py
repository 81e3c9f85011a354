"""A client of which nothing counts: beside it, what a lie costs more than the loss of the liar's own examples."""

from __future__ import annotations

import math

from torch import Tensor

import fedfuse
from fedfuse.core.weights import Weights
from fedfuse.federation.attack import Situation


class Refused(fedfuse.Attack):
    """Send what is infinite, and is refused."""

    def weights(self, honest: Weights, situation: Situation) -> Weights:
        return math.inf * honest

    def predictions(self, honest: Tensor, situation: Situation) -> Tensor:
        return math.inf * (honest + 1)
