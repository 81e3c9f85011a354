"""The average of FedAvg (McMahan et al., 2017), and a step of another length towards it.

    avg = sum_k (n_k / sum_j n_j) xhat_k;   x_t = x_{t-1} + eta_g (avg - x_{t-1})

BatchNorm statistics are the average's: a longer step could make a running variance negative.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fedfuse.core.weights import Weights
from fedfuse.parts.context import ServerView
from fedfuse.parts.merge.base import AveragingMerge, Merged


class Mean(AveragingMerge):
    """Weighted mean of the clients' weights."""

    kind: Literal["mean"] = "mean"
    server_rate: float = Field(1.0, gt=0, description="eta_g: length of the step to the average; 1 is the average")

    def step(self, view: ServerView, prototype: str, average: Weights) -> Merged:
        if self.server_rate == 1:
            return Merged(average)  # x + (avg - x) would be the average only up to rounding
        previous = view.weights[prototype].parameters
        return Merged(average.with_parameters(previous + self.server_rate * (average.parameters - previous)))
