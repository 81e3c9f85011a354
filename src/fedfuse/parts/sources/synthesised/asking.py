"""Teachers that are asked for gradients, one at a time.

A teacher's network is lent, asked and given back. When the gradient is wanted it is lent once more and computes its
answer anew: so memory holds one teacher, with the layers of one batch, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from fedfuse.models.modes import evaluation_mode
from fedfuse.parts.sources.synthesised.losses import statistics_distance

Lend = Callable[[], AbstractContextManager[nn.Module]]
"""A teacher's network until the block ends: from inputs to logits."""


def asked(lend: Lend, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """A teacher's logits, and how far the inputs are from what its BatchNorm layers remember; both with gradients."""
    said: tuple[Tensor, Tensor] = _Asked.apply(inputs, lend)  # type: ignore[no-untyped-call]
    return said


class _Asked(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, inputs: Tensor, lend: Lend) -> tuple[Tensor, Tensor]:
        context.lend = lend
        context.save_for_backward(inputs)
        return lend_and_ask(lend, inputs)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        with torch.enable_grad():
            inputs = context.saved_tensors[0].detach().requires_grad_()
            said = zip(lend_and_ask(context.lend, inputs), gradients, strict=True)
            answers, weights = zip(*((one, weight) for one, weight in said if one.requires_grad), strict=True)
            [slope] = torch.autograd.grad(answers, inputs, weights)
        return slope, None


def lend_and_ask(lend: Lend, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """The same without the second lending, for one teacher alone."""
    with lend() as network, evaluation_mode(network), statistics_distance(network) as distance:
        logits = network(inputs)
        return logits, distance().to(logits.device)
