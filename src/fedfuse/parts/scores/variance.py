"""g(p) = the variance of p over the classes: zero for a teacher that cannot tell them apart."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from fedfuse.parts.scores.outputs import ByOutputs


class ByVariance(ByOutputs):
    """The more a teacher's probabilities differ from class to class, the more it counts."""

    kind: Literal["variance"] = "variance"

    def of(self, probabilities: Tensor) -> Tensor:
        return probabilities.var(dim=1, unbiased=False)
