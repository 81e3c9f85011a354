"""g(p) = max_c p_c: a teacher counts by the probability of its first choice."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from fedfuse.parts.scores.outputs import ByOutputs


class ByConfidence(ByOutputs):
    """The surer a teacher is of its first choice, the more it counts."""

    kind: Literal["confidence"] = "confidence"

    def of(self, probabilities: Tensor) -> Tensor:
        return probabilities.amax(dim=1)
