"""The opposite of what was learnt (Li et al., RSA, AAAI 2019): x_k = x - factor (xhat_k - x)."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field

from fedfuse.core.weights import Weights
from fedfuse.federation.attack import Attack, Situation
from fedfuse.testing.attacks.layers import of_last_layer
from fedfuse.testing.attacks.moves import moved


class SignFlip(Attack):
    """Move the weights the other way."""

    kind: Literal["sign_flip"] = "sign_flip"
    bends: ClassVar[str] = "weights"
    factor: float = Field(1.0, gt=0, description="how far the other way, in lengths of the honest move")
    layers: Literal["all", "last"] = Field("all", description="of which layers; the others are honest")

    def weights(self, honest: Weights, situation: Situation) -> Weights:
        flipped = moved(honest, situation.sent, -self.factor)
        if self.layers == "all":
            return flipped
        last = of_last_layer(honest.layout).to(honest.parameters.device)
        return honest.with_parameters(torch.where(last, flipped.parameters, honest.parameters))
