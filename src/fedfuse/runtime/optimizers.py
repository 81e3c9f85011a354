"""Optimisers that a client's training and the server's distillation can name."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import nn

from fedfuse.core.choice import OneOf
from fedfuse.core.part import Part


class Optimizer(Part):
    """What an optimiser's section of an experiment file is."""

    kind: str
    learning_rate: float = Field(gt=0)

    @abstractmethod
    def build(self, model: nn.Module, learning_rate: float | None = None) -> torch.optim.Optimizer:
        """An optimiser of the model's parameters, with this rate in place of its own where one is given."""


class DecayingOptimizer(Optimizer):
    """The base of ours, which all have weight decay."""

    weight_decay: float = Field(0.0, ge=0)
    decay_norms: bool = Field(True, description="whether weight decay also pulls at the scales of norm layers")
    decay_biases: bool = Field(True, description="whether weight decay also pulls at biases; FedBE's code: false")

    def build(self, model: nn.Module, learning_rate: float | None = None) -> torch.optim.Optimizer:
        groups = parameter_groups(model, self.weight_decay, self.decay_norms, self.decay_biases)
        return self.of(groups, self.learning_rate if learning_rate is None else learning_rate, can_fuse(model))

    @abstractmethod
    def of(self, groups: list[dict[str, Any]], rate: float, fused: bool) -> torch.optim.Optimizer:
        """Torch's optimiser of these parameter groups."""


class Sgd(DecayingOptimizer):
    """Stochastic gradient descent."""

    kind: Literal["sgd"] = "sgd"
    learning_rate: float = Field(0.1, gt=0)
    momentum: float = Field(0.0, ge=0, lt=1)

    def of(self, groups: list[dict[str, Any]], rate: float, fused: bool) -> torch.optim.Optimizer:
        return torch.optim.SGD(groups, lr=rate, momentum=self.momentum, fused=fused)


class Adam(DecayingOptimizer):
    """Adam with torch's default moments."""

    kind: Literal["adam"] = "adam"
    learning_rate: float = Field(1e-3, gt=0)

    def of(self, groups: list[dict[str, Any]], rate: float, fused: bool) -> torch.optim.Optimizer:
        return torch.optim.Adam(groups, lr=rate, fused=fused)


class AdamW(DecayingOptimizer):
    """Adam whose weight decay is apart from the gradient (Loshchilov and Hutter, 2019), with torch's defaults."""

    kind: Literal["adamw"] = "adamw"
    learning_rate: float = Field(1e-3, gt=0)
    weight_decay: float = Field(0.01, ge=0, description="weights shrink by this times the rate at every step")

    def of(self, groups: list[dict[str, Any]], rate: float, fused: bool) -> torch.optim.Optimizer:
        return torch.optim.AdamW(groups, lr=rate, fused=fused)


def parameter_groups(
    model: nn.Module, weight_decay: float, decay_norms: bool, decay_biases: bool
) -> list[dict[str, Any]]:
    """All parameters with the weight decay that applies to them."""
    if (decay_norms and decay_biases) or weight_decay == 0:
        return [{"params": list(model.parameters()), "weight_decay": weight_decay}]
    spared = {
        id(p)
        for layer in model.modules()
        for name, p in layer.named_parameters(recurse=False)
        if (not decay_norms and isinstance(layer, NORM_LAYERS)) or (not decay_biases and name == "bias")
    }
    return [
        {"params": [p for p in model.parameters() if id(p) not in spared], "weight_decay": weight_decay},
        {"params": [p for p in model.parameters() if id(p) in spared], "weight_decay": 0.0},
    ]


NORM_LAYERS = (
    nn.modules.batchnorm._BatchNorm,
    nn.GroupNorm,
    nn.LayerNorm,
    nn.RMSNorm,
    nn.modules.instancenorm._InstanceNorm,
)


def can_fuse(model: nn.Module) -> bool:
    """Whether torch has one kernel for the whole step here; it has for ordinary floats on these devices."""
    return all(p.is_floating_point() and p.device.type in ("cpu", "cuda", "mps") for p in model.parameters())


AnyOptimizer = Annotated[Optimizer, OneOf(Sgd, Adam, AdamW)]
