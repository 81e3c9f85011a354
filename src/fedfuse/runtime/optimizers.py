"""Optimisers that a client's training and the server's distillation can name."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import nn

from fedfuse.core.part import Part


class Sgd(Part):
    """Stochastic gradient descent."""

    kind: Literal["sgd"] = "sgd"
    learning_rate: float = Field(0.1, gt=0)
    momentum: float = Field(0.0, ge=0, lt=1)
    weight_decay: float = Field(0.0, ge=0)

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.SGD(
            model.parameters(),
            lr=self.learning_rate,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            fused=can_fuse(model),
        )


class Adam(Part):
    """Adam with torch's default moments."""

    kind: Literal["adam"] = "adam"
    learning_rate: float = Field(1e-3, gt=0)
    weight_decay: float = Field(0.0, ge=0)

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.Adam(
            model.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay, fused=can_fuse(model)
        )


def can_fuse(model: nn.Module) -> bool:
    """Whether torch has one kernel for the whole step here; it has for ordinary floats on these devices."""
    return all(p.is_floating_point() and p.device.type in ("cpu", "cuda", "mps") for p in model.parameters())


AnyOptimizer = Annotated[Sgd | Adam, Field(discriminator="kind")]
