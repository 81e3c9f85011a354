"""Free riders (Lin, Du and Liu, 2019; Fraboni, Vidal and Lorenzi, AISTATS 2021): what came goes back, perhaps noisy."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field

from fedfuse.core.weights import Weights
from fedfuse.federation.attack import Attack, Situation


class FreeRider(Attack):
    """Take the model, and contribute nothing."""

    kind: Literal["free_rider"] = "free_rider"
    bends: ClassVar[str] = "weights"
    noise: float = Field(0.0, ge=0, description="deviation of the noise that disguises it")

    def weights(self, honest: Weights, situation: Situation) -> Weights:
        sent = situation.sent
        if not self.noise:
            return sent
        disguise = torch.randn(len(sent.parameters), generator=situation.key.torch())
        return sent.with_parameters(sent.parameters + self.noise * disguise)
