"""One-bit weights: every filter has two values (FedDF, section 4.3, with the quantiser of its released code).

    Q(w):  m = mean(w), r = rms(w - m);   q = m + r sign(w - m)        per filter of a convolution, else per tensor

Norm layers keep full precision: their few numbers decide the scale of everything else.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from pydantic import Field
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError, unknown
from fedfuse.parts.base import CheckContext, MethodPart
from fedfuse.runtime.optimizers import NORM_LAYERS


class BinaryPart(MethodPart):
    """A part of a method for prototypes with one-bit weights; the other prototypes keep full precision."""

    prototypes: tuple[str, ...] | None = Field(
        None, min_length=1, description="the models that have one-bit weights; null means all"
    )

    def binarises(self, prototype: str) -> bool:
        return self.prototypes is None or prototype in self.prototypes

    def check(self, context: CheckContext) -> None:
        super().check(context)
        for name in self.prototypes or ():
            if name not in context.bank.prototypes:
                raise ConfigError(f"one_bit prototypes: {unknown('model', name, context.bank.prototypes)}")


def norm_parameters(model: nn.Module) -> frozenset[str]:
    """Names of the parameters that belong to norm layers."""
    return frozenset(
        f"{prefix}.{name}" if prefix else name
        for prefix, layer in model.named_modules()
        if isinstance(layer, NORM_LAYERS)
        for name, _ in layer.named_parameters(recurse=False)
    )


def groups(tensor: Tensor) -> Tensor:
    """The tensor as rows that share their two values."""
    return tensor.reshape(len(tensor), -1) if tensor.ndim == 4 else tensor.reshape(1, -1)


def quantise(tensor: Tensor) -> Tensor:
    """Q: the nearest the tensor can come with two values per group in this way."""
    rows = groups(tensor)
    middle = rows.mean(dim=1, keepdim=True)
    radius = (rows - middle).square().mean(dim=1, keepdim=True).sqrt()
    return torch.where(rows >= middle, middle + radius, middle - radius).reshape(tensor.shape)


def binary_parameters(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """The parameters that are quantised, in the order of the model's layout."""
    exact = norm_parameters(model)
    return ((name, p) for name, p in model.named_parameters() if name not in exact)
