"""Whether a network with its units in another order computes what it did: both are asked, with random weights."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from fedfuse.core.randomness import Key
from fedfuse.models.adapt import logits_of

Reorder = Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]]

PRECISIONS = ((torch.float64, 1e-6), (torch.float32, 1e-4))
"""Types in which networks are asked, and how much of the largest number may differ: some do a step in single precision
whatever they are given, and some do nothing else."""


def computes_the_same(network: nn.Module, example: Tensor, reorder: Reorder) -> bool:
    """Whether reordered weights give the same answers, up to rounding."""
    for dtype, tolerance in PRECISIONS:
        try:
            return _compared(copy.deepcopy(network).to(dtype).eval(), example, reorder, tolerance)
        except Exception:  # somebody else's network may fail in any way
            continue
    return False


@torch.no_grad()
def _compared(network: nn.Module, example: Tensor, reorder: Reorder, tolerance: float) -> bool:
    _shake(network)
    tensors = {**dict(network.named_parameters()), **dict(network.named_buffers())}
    before = _answers(network, example)
    floating = {name: tensor.clone() for name, tensor in tensors.items() if tensor.is_floating_point()}
    for name, tensor in reorder(floating).items():
        tensors[name].copy_(tensor)
    after = _answers(network, example)
    return bool((after - before).abs().max() <= tolerance * before.abs().max()) and bool(before.isfinite().all())


def _shake(network: nn.Module) -> None:
    """No two units alike; buffers stay positive where they are, as variances must."""
    random = Key(0, ("proof",)).torch()
    for parameter in network.parameters():
        noise = torch.randn(parameter.shape, generator=random).to(parameter)
        parameter.mul_(1 + 0.3 * noise).add_(noise.flip(0) if noise.ndim else noise, alpha=0.03)
    for buffer in network.buffers():
        if buffer.is_floating_point():
            noise = torch.rand(buffer.shape, generator=random).to(buffer)
            buffer.mul_(1 + 0.3 * noise).add_(noise, alpha=0.03)


def _answers(network: nn.Module, example: Tensor) -> Tensor:
    inputs = example.to(next(network.parameters()).dtype) if example.is_floating_point() else example
    with Key(0, ("answers",)).default_generator():
        answers: Tensor = logits_of(network(inputs))
    return answers
