"""A loud teacher: the last layer many times larger, so that its logits drown the others' in a mean of logits."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field

from fedfuse.core.weights import Weights
from fedfuse.federation.attack import Attack, Situation
from fedfuse.testing.attacks.layers import of_last_layer


class Loud(Attack):
    """Say the same, or the opposite, much louder."""

    kind: Literal["loud"] = "loud"
    bends: ClassVar[str] = "weights"
    factor: float = Field(-50.0, description="of the last layer; negative: what is right gets the smallest logit")

    def weights(self, honest: Weights, situation: Situation) -> Weights:
        loud = of_last_layer(honest.layout).to(honest.parameters.device)
        return honest.with_parameters(torch.where(loud, self.factor * honest.parameters, honest.parameters))
