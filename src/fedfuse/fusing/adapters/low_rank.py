"""The nearest matrix of a given rank (Eckart and Young, 1936): the largest singular values are kept.

A sum of products [L1 L2 ...] [R1; R2; ...] is never multiplied out. With L = Q_L T_L and R^T = Q_R T_R (QR), the
singular values of L R are those of the small T_L T_R^T, and its singular vectors are those multiplied by Q_L and Q_R.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedfuse.core.errors import DataError
from fedfuse.core.weights import is_finite


@dataclass(frozen=True)
class Factors:
    """A matrix as a product of two, and how much of it they hold, in Frobenius norms."""

    left: Tensor
    right: Tensor
    norm: float
    """Of the whole matrix."""
    left_out: float
    """Of what the product lacks: the root of the sum of the squares of the singular values that were not kept."""

    @property
    def rank(self) -> int:
        return self.left.shape[1]


def of_products(lefts: Sequence[Tensor], rights: Sequence[Tensor], rank: int) -> Factors:
    """The sum of the products, of at most this rank; exact where it is at least the sum of their ranks."""
    left_basis, left_rest = torch.linalg.qr(torch.cat(list(lefts), dim=1))
    right_basis, right_rest = torch.linalg.qr(torch.cat(list(rights)).T)
    small = of_matrix(left_rest @ right_rest.T, rank)
    return Factors(left_basis @ small.left, small.right @ right_basis.T, small.norm, small.left_out)


def of_matrix(matrix: Tensor, rank: int) -> Factors:
    """A matrix of at most this rank, both factors equally large."""
    if not is_finite(matrix):
        raise DataError("the merged change has numbers that are not finite, so it cannot be written")
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    roots = values[:rank].sqrt()
    return Factors(left[:, :rank] * roots, roots[:, None] * right[:rank], _norm(values), _norm(values[rank:]))


def _norm(values: Tensor) -> float:
    return float(torch.linalg.vector_norm(values)) if len(values) else 0.0
