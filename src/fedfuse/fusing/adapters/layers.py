"""Layers that an adapter may change, as matrices M whose rows are outputs, and how it changes them.

    LoRA  M' = M + s B A
    DoRA  M' = diag(m / ||M + s B A||) (M + s B A), the norms being those of rows

An embedding's weight, and that of GPT-2's Conv1D, is the transpose of M; a convolution's rows have all its kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

Kind = Literal["linear", "transposed", "embedding", "convolution"]
TRANSPOSED = "Conv1D"
"""The name of the class of transformers whose weights lie the other way round."""


def kind_of(module: nn.Module) -> Kind | None:
    """None for what has no low-rank change."""
    if isinstance(module, nn.Linear):
        return "linear"
    if isinstance(module, nn.Embedding):
        return "embedding"
    if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d):
        return "convolution" if module.groups == 1 else None
    return "transposed" if type(module).__name__ == TRANSPOSED else None


def matrix_of(weight: Tensor, kind: Kind) -> Tensor:
    """M, in double precision."""
    matrix = weight.double()
    return matrix.T if kind in ("transposed", "embedding") else matrix.reshape(len(matrix), -1)


def weight_of(matrix: Tensor, kind: Kind, shape: tuple[int, ...]) -> Tensor:
    """The way back."""
    return matrix.T if kind in ("transposed", "embedding") else matrix.reshape(shape)


def matrix_shape(shape: tuple[int, ...], kind: Kind) -> tuple[int, int]:
    """Of M, whose weight has this shape."""
    if kind in ("transposed", "embedding"):
        return shape[1], shape[0]
    return shape[0], int(torch.Size(shape[1:]).numel())


@dataclass(frozen=True)
class Change:
    """What an adapter makes of a layer; the scaling is in ``left``."""

    left: Tensor
    """s B: rows of M, rank."""
    right: Tensor
    """A: rank, columns of M."""
    magnitudes: Tensor | None = None
    """m of DoRA, one for each row."""

    @property
    def product(self) -> Tensor:
        return self.left @ self.right

    def of(self, matrix: Tensor) -> Tensor:
        """M' from M."""
        moved = matrix + self.product
        if self.magnitudes is None:
            return moved
        norms: Tensor = torch.linalg.vector_norm(moved, dim=1)
        return (self.magnitudes / norms)[:, None] * moved
