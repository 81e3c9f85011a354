"""Random numbers in the place of weights (Blanchard et al., NeurIPS 2017): x_k ~ N(0, deviation^2)."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field

from fedfuse.core.weights import Weights
from fedfuse.federation.attack import Attack, Situation


class Gaussian(Attack):
    """Send noise."""

    kind: Literal["gaussian"] = "gaussian"
    bends: ClassVar[str] = "weights"
    deviation: float = Field(1.0, gt=0, description="of the noise, in every number")
    around: Literal["zero", "sent"] = Field("zero", description="noise instead of the weights, or on what was sent")

    def weights(self, honest: Weights, situation: Situation) -> Weights:
        noise = self.deviation * torch.randn(len(honest.parameters), generator=situation.key.torch())
        return honest.with_parameters(noise if self.around == "zero" else situation.sent.parameters + noise)
