"""The geometric median by the smoothed Weiszfeld iteration: RFA (Pillutla, Kakade and Harchaoui, Robust Aggregation for
Federated Learning, IEEE Transactions on Signal Processing 2022).

    minimise over z  sum_k a_k |x_k - z|,      a_k = n_k / sum n, or 1 / n
    z <- sum_k b_k x_k / sum_k b_k,            b_k = a_k / max(nu, |x_k - z|),  beginning with the mean

While hostile clients count for less than half, it stays near the honest ones, however far away they are. BatchNorm
statistics are medians.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.messages import Tensors, Update
from fedfuse.core.sums import Sum
from fedfuse.core.weights import Weights, shares
from fedfuse.parts.context import ServerView
from fedfuse.parts.merge.base import WeightedMerge
from fedfuse.parts.merge.robust import RobustMerge


class GeometricMedian(WeightedMerge, RobustMerge):
    """The point with the smallest sum of distances to all clients."""

    kind: Literal["geometric_median"] = "geometric_median"
    iterations: int = Field(10, ge=1, description="of Weiszfeld; RFA takes 3, and more where clients are far apart")
    smoothing: float = Field(1e-6, gt=0, description="nu: nearer clients count as this far away")

    def parameters(self, view: ServerView, prototype: str, updates: Sequence[Update]) -> tuple[Tensor, Tensors]:
        weights = [update.weights for update in updates]
        counts = shares(self.coefficients([update.examples for update in updates]))
        return geometric_median(weights, counts, self.iterations, self.smoothing), {}


def geometric_median(weights: Sequence[Weights], counts: Sequence[float], iterations: int, smoothing: float) -> Tensor:
    """Of the parameters, in double precision; models are gone through one by one, and may lie in a file."""
    centre = _mean(weights, counts)
    for _ in range(iterations):
        apart = [math.sqrt(_squared(one.parameters, centre)) for one in weights]
        centre = _mean(weights, [count / max(smoothing, far) for count, far in zip(counts, apart, strict=True)])
    return centre


def _mean(weights: Sequence[Weights], counts: Sequence[float]) -> Tensor:
    total = Sum(weights[0].layout.parameter_count)
    for one, share in zip(weights, shares(counts), strict=True):
        total.add(one.parameters, share)
    return total.total


def _squared(parameters: Tensor, centre: Tensor) -> float:
    return float(torch.sum((parameters.double() - centre) ** 2))
