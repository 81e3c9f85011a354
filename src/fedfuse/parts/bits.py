"""Probabilities in few bits: the quantised soft labels of CFD (Sattler et al., 2021).

With b bits a probability is a multiple of 1 / (2^b - 1). Rounding keeps the sum of a row at 1: all are rounded down,
and what is missing goes to the largest remainders. With one bit only the most probable class is left, so its
index travels: n ceil(log2 K) bits instead of n K b.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def quantise(probabilities: Tensor, bits: int) -> Tensor:
    """Whole numbers from 0 to 2^bits - 1 whose rows sum to 2^bits - 1."""
    levels = 2**bits - 1
    positive = probabilities.double().clamp_min(0)
    exact = positive / positive.sum(dim=1, keepdim=True).clamp_min(1e-30) * levels
    codes = exact.floor()
    missing = (levels - codes.sum(dim=1, keepdim=True)).long()
    order = (exact - codes).argsort(dim=1, descending=True, stable=True)
    rank = order.argsort(dim=1)
    return torch.where(rank < missing, codes + 1, codes).long()


def pack(probabilities: Tensor, bits: int) -> Tensor:
    """Quantised probabilities as bytes."""
    codes = quantise(probabilities, bits)
    width = index_bits(codes.shape[1])
    symbols = codes.argmax(dim=1, keepdim=True) if bits == 1 else codes
    return torch.from_numpy(np.packbits(_binary(symbols.numpy(), width if bits == 1 else bits)))


def unpack(packed: Tensor, bits: int, rows: int, classes: int) -> Tensor:
    """The quantised probabilities behind the bytes; an index beyond the classes is taken for the last one."""
    columns, width = (1, index_bits(classes)) if bits == 1 else (classes, bits)
    stream = np.unpackbits(packed.numpy(), count=rows * columns * width).reshape(rows, columns, width)
    symbols: Tensor = torch.from_numpy(stream.astype(np.int64) @ (1 << np.arange(width)[::-1]))
    if bits == 1:
        return torch.nn.functional.one_hot(symbols[:, 0].clamp_max(classes - 1), classes).float()
    probabilities: Tensor = symbols.float() / (2**bits - 1)
    return probabilities


def packed_size(bits: int, rows: int, classes: int) -> int:
    """How many bytes ``pack`` makes."""
    return (rows * (index_bits(classes) if bits == 1 else classes * bits) + 7) // 8


def index_bits(classes: int) -> int:
    """Bits that tell the classes apart."""
    return max(1, (classes - 1).bit_length())


def _binary(numbers: NDArray[np.int64], width: int) -> NDArray[np.uint8]:
    """Each number as ``width`` bits, the highest first."""
    return ((numbers[..., None] >> np.arange(width)[::-1]) & 1).astype(np.uint8)
