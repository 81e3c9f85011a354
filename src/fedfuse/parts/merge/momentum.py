"""Server momentum, FedAvgM (Hsu et al., 2019), in the two forms that later papers compare with.

    d = x_{t-1} - avg;   v <- beta v + share d;   x_t = x_{t-1} - v

plain: share = 1, as FedDF. damped: share = 1 - beta, as the code of FedBE and of MOON.
BatchNorm statistics are the average's: momentum on a running variance could make it negative.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field

from fedfuse.core.weights import Weights
from fedfuse.parts.context import ServerView
from fedfuse.parts.merge.base import AveragingMerge, Merged


class Momentum(AveragingMerge):
    """Weighted mean, continued in the direction of the past rounds."""

    kind: Literal["momentum"] = "momentum"
    form: Literal["plain", "damped"] = Field(
        "plain", description="plain: v <- beta v + d; damped: (1 - beta) d instead"
    )
    beta: float = Field(
        0.2, ge=0, lt=1, description="how much of v is kept; FedDF tunes .1 to .4 (plain), FedBE's code .9 (damped)"
    )
    warm_up: int = Field(
        0, ge=0, description="first rounds that only average, and leave their d as v; FedBE's code: 2, others 0"
    )

    def step(self, view: ServerView, prototype: str, average: Weights) -> Merged:
        previous = view.weights[prototype].parameters
        difference = previous - average.parameters
        if view.round <= self.warm_up:
            return Merged(average, {"velocity": difference})
        past = self.beta * view.memory.get("velocity", torch.zeros_like(previous))
        share = 1.0 if self.form == "plain" else 1 - self.beta
        # x_{t-1} - v written from the average: the same number, and exactly the average when beta is 0.
        merged = average.parameters + (1 - share) * difference - past
        return Merged(average.with_parameters(merged), {"velocity": past + share * difference})
