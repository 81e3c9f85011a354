"""Optimisers that a client's training and the server's distillation can name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import MutableMapping
from typing import Annotated, Any, Literal, Protocol

import torch
from pydantic import Field
from torch import Tensor, nn

from fedfuse.core.choice import OneOf
from fedfuse.core.part import Part
from fedfuse.runtime.fused import FusedAdam, FusedSgd, can_fuse, has_kernels

Groups = list[dict[str, Any]]
"""Parameters (``params``), each list with the weight decay that applies to it (``weight_decay``)."""


class Stepper(Protocol):
    """An optimiser at work. Those of torch.optim are such, too."""

    @property
    def param_groups(self) -> Groups:
        """Its parameters; the rate of each group is ``lr``, and may be set before any step."""

    @property
    def state(self) -> MutableMapping[Tensor, Any]:
        """What it remembers of each parameter, by names; it may be filled before the first step."""

    def zero_grad(self) -> None:
        """Forget all gradients."""

    def step(self) -> Any:
        """Move every parameter that has a gradient."""


class Optimizer(Part):
    """What an optimiser's section of an experiment file is."""

    kind: str
    learning_rate: float = Field(gt=0, description="length of a step (eta of the papers)")

    @abstractmethod
    def build(self, model: nn.Module, learning_rate: float | None = None) -> Stepper:
        """An optimiser of the model's parameters, with this rate in place of its own where one is given."""


class DecayingOptimizer(Optimizer):
    """The base of ours, which all have weight decay."""

    weight_decay: float = Field(0.0, ge=0, description="pull of the weights towards zero, added to the gradient")
    decay_norms: bool = Field(True, description="whether weight decay also pulls at the scales of norm layers")
    decay_biases: bool = Field(True, description="whether weight decay also pulls at biases; FedBE's code: false")

    def build(self, model: nn.Module, learning_rate: float | None = None) -> Stepper:
        return self.of(self.groups(model), learning_rate)

    def groups(self, model: nn.Module) -> Groups:
        """The model's parameters with the weight decay that applies to them."""
        return parameter_groups(model, self.weight_decay, self.decay_norms, self.decay_biases)

    def of(self, groups: Groups, learning_rate: float | None = None) -> Stepper:
        """An optimiser of these parameters, on torch's kernels where they can be called directly."""
        rate = self.learning_rate if learning_rate is None else learning_rate
        parameters = [parameter for group in groups for parameter in group["params"]]
        if has_kernels(parameters):
            return self.direct(groups, rate)
        return self.by_torch(groups, rate, can_fuse(parameters))

    @abstractmethod
    def direct(self, groups: Groups, rate: float) -> Stepper:
        """The optimiser without torch.optim."""

    @abstractmethod
    def by_torch(self, groups: Groups, rate: float, fused: bool) -> Stepper:
        """Torch's own optimiser, which is right for all parameters."""


class Sgd(DecayingOptimizer):
    """Stochastic gradient descent."""

    kind: Literal["sgd"] = "sgd"
    learning_rate: float = Field(0.1, gt=0, description="length of a step (eta of the papers)")
    momentum: float = Field(0.0, ge=0, lt=1, description="share of the last step that is added to this one")

    def direct(self, groups: Groups, rate: float) -> Stepper:
        return FusedSgd(groups, rate, self.momentum)

    def by_torch(self, groups: Groups, rate: float, fused: bool) -> Stepper:
        return torch.optim.SGD(groups, lr=rate, momentum=self.momentum, fused=fused)


class Adam(DecayingOptimizer):
    """Adam with torch's default moments."""

    kind: Literal["adam"] = "adam"
    learning_rate: float = Field(1e-3, gt=0, description="length of a step (eta of the papers)")

    def direct(self, groups: Groups, rate: float) -> Stepper:
        return FusedAdam(groups, rate, decay_apart=False)

    def by_torch(self, groups: Groups, rate: float, fused: bool) -> Stepper:
        return torch.optim.Adam(groups, lr=rate, fused=fused)


class AdamW(DecayingOptimizer):
    """Adam whose weight decay is apart from the gradient (Loshchilov and Hutter, 2019), with torch's defaults."""

    kind: Literal["adamw"] = "adamw"
    learning_rate: float = Field(1e-3, gt=0, description="length of a step (eta of the papers)")
    weight_decay: float = Field(0.01, ge=0, description="weights shrink by this times the rate at every step")

    def direct(self, groups: Groups, rate: float) -> Stepper:
        return FusedAdam(groups, rate, decay_apart=True)

    def by_torch(self, groups: Groups, rate: float, fused: bool) -> Stepper:
        return torch.optim.AdamW(groups, lr=rate, fused=fused)


def parameter_groups(model: nn.Module, weight_decay: float, decay_norms: bool, decay_biases: bool) -> Groups:
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


AnyOptimizer = Annotated[Optimizer, OneOf(Sgd, Adam, AdamW)]
