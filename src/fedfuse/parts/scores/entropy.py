"""g(p) = exp(-H(p) / T), with H(p) = -sum_c p_c log p_c."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.parts.scores.outputs import ByOutputs


class ByEntropy(ByOutputs):
    """The less a teacher hesitates between classes, the more it counts."""

    kind: Literal["entropy"] = "entropy"
    temperature: float = Field(1.0, gt=0, description="T: the smaller, the more the surest teacher counts")

    def of(self, probabilities: Tensor) -> Tensor:
        entropy = torch.special.entr(probabilities).sum(dim=1)
        weight: Tensor = (-entropy / self.temperature).exp()
        return weight
