"""Server momentum, FedAvgM (Hsu et al., 2019), in the form that FedDF compares with.

    d = x_{t-1} - avg;   v <- beta v + d;   x_t = x_{t-1} - v

BatchNorm statistics are the average's: momentum on a running variance could make it negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field

from fedfuse.core.messages import Update
from fedfuse.merge.base import Merge, Merged
from fedfuse.runtime.view import ServerView


class Momentum(Merge):
    """Weighted mean, continued in the direction of the past rounds."""

    kind: Literal["momentum"] = "momentum"
    beta: float = Field(0.2, ge=0, lt=1, description="how much of the last round's step is kept; FedDF tunes .1 to .4")

    def merge(self, view: ServerView, prototype: str, updates: Sequence[Update]) -> Merged:
        average, previous = self.average(updates), view.weights[prototype].parameters
        past = self.beta * view.memory.get("velocity", torch.zeros_like(previous))
        velocity = past + (previous - average.parameters)
        # x_{t-1} - v written as avg - beta v: the same number, and exactly the average when beta is 0.
        return Merged(average.with_parameters(average.parameters - past), {"velocity": velocity})
