"""Inner product manipulation (Xie, Koyejo and Gupta, UAI 2019): x_k = x - factor mean of the honest moves."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from fedfuse.core.weights import Weights
from fedfuse.federation.attack import Attack, Situation
from fedfuse.testing.attacks.moves import moved_by, moves_of


class InnerProduct(Attack):
    """Against the honest mean, so that what comes out has a negative inner product with it."""

    kind: Literal["inner_product"] = "inner_product"
    bends: ClassVar[str] = "weights"
    knows_others: ClassVar[bool] = True
    factor: float = Field(1.0, gt=0, description="epsilon: below 1 it is hard to see, above it reaches farther")

    def weights(self, honest: Weights, situation: Situation) -> Weights:
        moves = moves_of(situation.others, situation.sent)
        return moved_by(honest, situation.sent, -self.factor * moves.mean(dim=0))
