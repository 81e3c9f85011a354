"""What a generator is trained to make: inputs of a wanted class that look familiar and that students do not know yet.

    L = L_CE + lambda_1 L_BN + lambda_2 L_div,   D are the teachers together, f_S is a student (DENSE)

    L_CE  = CE( D(x), y )
    L_BN  = (1/m) sum_k sum_l ( || mu_l(x) - mu_kl ||_2 + || var_l(x) - var_kl ||_2 )
    L_div = - 1[ argmax D(x) != argmax f_S(x) ]  KL( D(x), f_S(x) )

mu_kl and var_kl are what BatchNorm layer l of teacher k remembers of its data. Co-Boosting gives an input the weight
(1 - D(x)_y)^beta in L_CE, so that the hard ones count, and moves inputs to where the teachers' answer changes:

    x + epsilon sign( d/dx  u . softmax( D(x) / 4 ) ),   u uniform in [-1, 1]^K for each input
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from fedfuse.models.modes import batch_norms
from fedfuse.runtime.losses import kl_by_class

MOVING_TEMPERATURE = 4.0
"""Of Co-Boosting's code."""


def label_loss(said: Tensor, labels: Tensor, hardness: float = 0.0) -> Tensor:
    """Cross-entropy of log-probabilities, where an input counts (1 - p_y)^``hardness``."""
    wanted = said.gather(1, labels[:, None]).squeeze(1)
    difficulty = (1 - wanted.detach().exp()).clamp_min(0) ** hardness
    return -(difficulty * wanted).mean()


def divergence_loss(said: Tensor, student: Tensor) -> Tensor:
    """Minus the divergence from log-probabilities to a student's logits, where the two name different classes."""
    disagree = said.argmax(dim=1) != student.argmax(dim=1)
    return -(disagree * kl_by_class(said, student).sum(dim=1)).mean()


@contextmanager
def statistics_distance(network: nn.Module) -> Iterator[Callable[[], Tensor]]:
    """How far batches that pass a network's BatchNorm layers inside the block are from what the layers remember."""
    distances: list[Tensor] = []

    def compare(layer: Any, inputs: tuple[Any, ...]) -> None:
        over = [axis for axis in range(inputs[0].ndim) if axis != 1]
        variance, mean = torch.var_mean(inputs[0], dim=over, correction=0)
        distances.append((mean - layer.running_mean).norm() + (variance - layer.running_var).norm())

    layers = [layer for layer in batch_norms(network) if layer.running_mean is not None]
    hooks = [layer.register_forward_pre_hook(compare) for layer in layers]
    try:
        yield lambda: torch.stack(distances).sum() if distances else torch.zeros(())
    finally:
        for hook in hooks:
            hook.remove()


def moved(
    inputs: Tensor, ask: Callable[[Tensor], Tensor], classes: int, by: float | Tensor, random: torch.Generator
) -> Tensor:
    """Inputs moved by this much in every number, each in a direction of its own in which the answer changes."""
    inputs = inputs.detach().requires_grad_()
    direction = torch.empty(len(inputs), classes).uniform_(-1, 1, generator=random).to(inputs.device)
    change = (direction * (ask(inputs) / MOVING_TEMPERATURE).softmax(dim=1)).sum()
    [slope] = torch.autograd.grad(change, inputs)
    return (inputs + by * slope.sign().nan_to_num()).detach()
