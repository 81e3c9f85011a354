"""False predictions, for protocols in which clients send what their models say about public inputs.

reversed   the most probable class gets the smallest number, the least probable one the largest
constant   all inputs are of the first class
shifted    every class is called by the next one's number
noise      numbers at random
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.federation.attack import Attack, Situation


class FalsePredictions(Attack):
    """Say something else about the public inputs than the model does."""

    kind: Literal["predictions"] = "predictions"
    bends: ClassVar[str] = "predictions"
    say: Literal["reversed", "constant", "shifted", "noise"] = Field(
        "shifted", description="what it says instead of its own"
    )
    loudness: float = Field(1.0, gt=0, description="what logits are multiplied by; probabilities cannot be louder")

    def predictions(self, honest: Tensor, situation: Situation) -> Tensor:
        false = self._false(honest, situation)
        are_probabilities = bool((honest >= 0).all() and (honest.sum(dim=1) <= 1.01).all())
        return false if are_probabilities else self.loudness * false

    def _false(self, honest: Tensor, situation: Situation) -> Tensor:
        if self.say == "reversed":
            values = honest.sort(dim=1).values
            return torch.zeros_like(honest).scatter(1, honest.argsort(dim=1, descending=True), values)
        if self.say == "constant":
            return honest.sort(dim=1, descending=True).values
        if self.say == "shifted":
            return honest.roll(1, dims=1)
        order = torch.rand(honest.shape, generator=situation.key.torch()).argsort(dim=1)
        return honest.gather(1, order)
