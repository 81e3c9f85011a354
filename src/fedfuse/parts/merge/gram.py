"""What the layers of a network read: the Gram matrices X^T X of their inputs.

A linear layer reads a vector of features, once for each input or token. A convolution in one group is a linear layer
too, whose features are the patches that its kernel sees.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedfuse.models.modes import evaluation_mode


def regressed(model: nn.Module, most: int) -> dict[str, nn.Linear | nn.Conv2d]:
    """The layers that are linear in their inputs, by the name of their weights, and have at most so many features."""
    return {
        f"{name}.weight" if name else "weight": layer
        for name, layer in model.named_modules()
        if isinstance(layer, nn.Linear | nn.Conv2d) and _is_plain(layer) and layer.weight[0].numel() <= most
    }


@torch.no_grad()
def gram_matrices(model: nn.Module, batches: Iterable[Tensor], most: int) -> dict[str, Tensor]:
    """For each of these layers that is called, its matrix, summed in double precision on the CPU."""
    sums: dict[str, Tensor] = {}
    hooks = [
        layer.register_forward_pre_hook(partial(_look, sums, name)) for name, layer in regressed(model, most).items()
    ]
    try:
        with evaluation_mode(model):
            for batch in batches:
                model(batch)
    finally:
        for hook in hooks:
            hook.remove()
    return sums


def _look(sums: dict[str, Tensor], name: str, layer: nn.Module, arguments: tuple[Any, ...]) -> None:
    rows = _rows(layer, arguments[0]).float()
    product = (rows.T @ rows).cpu().double()
    sums[name] = sums[name] + product if name in sums else product


def _rows(layer: nn.Module, inputs: Tensor) -> Tensor:
    """One row of features for each time that the layer's weights are applied."""
    if isinstance(layer, nn.Conv2d):
        padding: Any = layer.padding
        patches = F.unfold(inputs, layer.kernel_size, layer.dilation, padding, layer.stride)
        return patches.transpose(1, 2).reshape(-1, patches.shape[1])
    return inputs.reshape(-1, inputs.shape[-1])


def _is_plain(layer: nn.Linear | nn.Conv2d) -> bool:
    if isinstance(layer, nn.Linear):
        return True
    return layer.groups == 1 and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
