"""Centred clipping (Karimireddy, He and Jaggi, Learning from History for Byzantine Robust Optimization, ICML 2021).

    v <- v + (1/n) sum_k (m_k - v) min(1, tau / |m_k - v|)        m_k = x_k - x, ``iterations`` times
    x <- x + v,   and the next round begins with this v

Nobody moves the centre by more than tau / n in an iteration. tau is fixed, or the median of the round's |m_k - v|,
which fewer than half of the clients cannot move far. The memory of past rounds is what sees through attacks that are
small in every single one. BatchNorm statistics are medians.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.messages import Tensors, Update
from fedfuse.core.weights import Weights
from fedfuse.parts.context import ServerView
from fedfuse.parts.merge.robust import RobustMerge

CENTRE = "centre"


class CentredClipping(RobustMerge):
    """The mean of updates that are clipped around last round's result."""

    kind: Literal["centred_clipping"] = "centred_clipping"
    radius: float | None = Field(None, gt=0, description="tau; unless said, the median distance of the round's clients")
    iterations: int = Field(3, ge=1, description="of the clipping; the paper takes 1 to 5")
    remember: bool = Field(True, description="begin with last round's result, and not with the weights as they were")

    def parameters(self, view: ServerView, prototype: str, updates: Sequence[Update]) -> tuple[Tensor, Tensors]:
        sent, weights = view.weights[prototype].parameters, [update.weights for update in updates]
        start = view.memory.get(CENTRE) if self.remember else None
        centre = torch.zeros_like(sent, dtype=torch.float64) if start is None else start.double()
        for _ in range(self.iterations):
            centre = self._clipped(weights, sent, centre)
        return sent.double() + centre, {CENTRE: centre.float()} if self.remember else {}

    def _clipped(self, weights: Sequence[Weights], sent: Tensor, centre: Tensor) -> Tensor:
        """One iteration; models are gone through one by one, because they may lie in a file."""
        middle = sent.double() + centre
        apart = [float(torch.linalg.vector_norm(one.parameters.double() - middle)) for one in weights]
        radius = self.radius or float(torch.tensor(apart, dtype=torch.float64).quantile(0.5))
        moved = centre.clone()
        for one, far in zip(weights, apart, strict=True):
            factor = min(1.0, radius / far) if far else 1.0
            moved.add_(one.parameters.double() - middle, alpha=factor / len(weights))
        return moved
