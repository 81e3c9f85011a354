"""SGD and Adam straight on the kernels of torch's fused optimisers: the bits of torch.optim without its first use.

The first optimiser of torch.optim in a process imports more than 800 modules, which takes about as long as torch
itself, and each of its steps spends more time around a small network's kernel than in it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

KERNELS = ("_fused_sgd_", "_fused_adam_", "_fused_adamw_")

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
"""Of Adam, as torch.optim has them."""


def has_kernels(parameters: Sequence[Tensor]) -> bool:
    """Whether one kernel can take a step with all of them: they are alike, and this torch has the kernels."""
    alike = {(parameter.device, parameter.dtype) for parameter in parameters}
    return len(alike) == 1 and can_fuse(parameters) and all(hasattr(torch, kernel) for kernel in KERNELS)


def can_fuse(parameters: Sequence[Tensor]) -> bool:
    """Whether torch has fused kernels for them; it has for ordinary floats on these devices."""
    return all(p.is_floating_point() and p.device.type in ("cpu", "cuda", "mps") for p in parameters)


@dataclass
class _Moving:
    """The parameters of a group that have a gradient, and their state: a list for each of its names."""

    having: list[bool] = field(default_factory=list)
    parameters: list[Tensor] = field(default_factory=list)
    state: list[list[Tensor]] = field(default_factory=list)
    is_first: bool = True


class FusedOptimizer(ABC):
    """What training uses of torch.optim.Optimizer, for parameters that one kernel can take a step with.

    ``state`` has what is remembered of each parameter that ever had a gradient. It may be filled before the first step,
    to go on from another optimiser's; later it is only to be read.
    """

    def __init__(self, groups: Sequence[dict[str, Any]], rate: float, *remembered: str) -> None:
        self.param_groups = [{**group, "lr": rate} for group in groups]
        self.remembered = remembered
        self.state: dict[Tensor, dict[str, Tensor]] = {}
        self._moving = [_Moving() for _ in groups]

    def zero_grad(self) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    def step(self) -> None:
        """Move every parameter that has a gradient."""
        with torch.no_grad():
            for place, group in enumerate(self.param_groups):
                gradients = [parameter.grad for parameter in group["params"]]
                having = [gradient is not None for gradient in gradients]
                if having != self._moving[place].having:
                    self._moving[place] = self._gather(group["params"], having)
                if any(having):
                    self._run(group, self._moving[place], [g for g in gradients if g is not None])
                    self._moving[place].is_first = False

    def _gather(self, parameters: Sequence[Tensor], having: list[bool]) -> _Moving:
        moving = [parameter for parameter, has in zip(parameters, having, strict=True) if has]
        fresh = [parameter for parameter in moving if parameter not in self.state]
        self.state.update({parameter: self._begin(parameter) for parameter in fresh})
        state = [[self.state[parameter][name] for parameter in moving] for name in self.remembered]
        return _Moving(having, moving, state, len(fresh) == len(moving))

    @abstractmethod
    def _begin(self, parameter: Tensor) -> dict[str, Tensor]:
        """The state of a parameter that has its first gradient."""

    @abstractmethod
    def _run(self, group: dict[str, Any], moving: _Moving, gradients: list[Tensor]) -> None:
        """Call the kernel."""


class FusedSgd(FusedOptimizer):
    """torch.optim.SGD(fused=True)."""

    def __init__(self, groups: Sequence[dict[str, Any]], rate: float, momentum: float) -> None:
        super().__init__(groups, rate, *(["momentum_buffer"] if momentum else []))
        self.momentum = momentum

    def _begin(self, parameter: Tensor) -> dict[str, Tensor]:
        assert parameter.grad is not None, "only such a parameter moves"
        return {name: torch.zeros_like(parameter.grad) for name in self.remembered}

    def _run(self, group: dict[str, Any], moving: _Moving, gradients: list[Tensor]) -> None:
        torch._fused_sgd_(
            moving.parameters,
            gradients,
            *(moving.state or [[]]),
            weight_decay=group["weight_decay"],
            momentum=self.momentum,
            lr=group["lr"],
            dampening=0.0,
            nesterov=False,
            maximize=False,
            is_first_step=moving.is_first,
        )


class FusedAdam(FusedOptimizer):
    """torch.optim.Adam(fused=True), or AdamW where weight decay is apart from the gradient."""

    def __init__(self, groups: Sequence[dict[str, Any]], rate: float, decay_apart: bool) -> None:
        super().__init__(groups, rate, "exp_avg", "exp_avg_sq", "step")
        self.kernel = torch._fused_adamw_ if decay_apart else torch._fused_adam_

    def _begin(self, parameter: Tensor) -> dict[str, Tensor]:
        moments = {name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}
        return {**moments, "step": torch.zeros((), dtype=torch.float32, device=parameter.device)}

    def _run(self, group: dict[str, Any], moving: _Moving, gradients: list[Tensor]) -> None:
        first, second, steps = moving.state
        torch._foreach_add_(steps, 1)
        self.kernel(
            moving.parameters,
            gradients,
            first,
            second,
            [],
            steps,
            lr=group["lr"],
            beta1=BETA_1,
            beta2=BETA_2,
            weight_decay=group["weight_decay"],
            eps=EPSILON,
            amsgrad=False,
            maximize=False,
        )
