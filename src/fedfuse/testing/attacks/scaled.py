"""What was learnt, many times over (the scaling of model replacement; Bagdasaryan et al., AISTATS 2020).

x_k = x + factor (xhat_k - x)
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from fedfuse.core.weights import Weights
from fedfuse.federation.attack import Attack, Situation
from fedfuse.testing.attacks.moves import moved


class Scaled(Attack):
    """Move the weights much farther."""

    kind: Literal["scaled"] = "scaled"
    bends: ClassVar[str] = "weights"
    factor: float = Field(20.0, description="of the honest move")

    def weights(self, honest: Weights, situation: Situation) -> Weights:
        return moved(honest, situation.sent, self.factor)
