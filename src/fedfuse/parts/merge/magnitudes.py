"""From which magnitude on a number belongs to the largest ones, of more numbers than fit into memory.

Magnitudes are compared in single precision, whose bits are ordered as the numbers are. Two passes count: of the upper
16 bits, then of the lower 15 among the numbers that have the upper ones of the threshold. So the threshold is exact,
and does not depend on how the numbers are cut into pieces.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

UPPER, LOWER = 16, 15
"""Bits of a number that is not negative."""

Columns = Callable[[], Iterable[Sequence[Tensor]]]
"""Goes through several long vectors at a time: yields a piece of each."""


def thresholds(columns: Columns, share: float, number: int) -> Tensor:
    """For each of ``number`` vectors, the smallest magnitude among this share of its entries, the largest ones.

    Whoever keeps all that are at least as large keeps more where several are just as large as the threshold.
    """
    counts = torch.zeros(number, 1 << UPPER, dtype=torch.long)
    for pieces in columns():
        for row, piece in zip(counts, pieces, strict=True):
            row += torch.bincount(_bits(piece) >> LOWER, minlength=1 << UPPER)
    wanted = [round(share * int(row.sum())) for row in counts]
    found = [_from_the_top(row, count) for row, count in zip(counts, wanted, strict=True)]
    finer = torch.zeros(number, 1 << LOWER, dtype=torch.long)
    for pieces in columns():
        for row, piece, (upper, _) in zip(finer, pieces, found, strict=True):
            bits = _bits(piece)
            row += torch.bincount(bits[bits >> LOWER == upper] & ((1 << LOWER) - 1), minlength=1 << LOWER)
    exact = [
        (upper << LOWER | _from_the_top(row, left)[0]) if count else _INFINITE
        for row, (upper, left), count in zip(finer, found, wanted, strict=True)
    ]
    return torch.tensor(exact, dtype=torch.int32).view(torch.float32)


def magnitude(numbers: Tensor) -> Tensor:
    """As they are compared."""
    return numbers.abs().float()


_INFINITE = int(torch.tensor(math.inf).view(torch.int32))


def _bits(numbers: Tensor) -> Tensor:
    return magnitude(numbers).view(torch.int32)


def _from_the_top(counts: Tensor, wanted: int) -> tuple[int, int]:
    """The place that has the ``wanted``-th number from the top, and the how manieth it is there."""
    if not wanted:
        return len(counts) - 1, 0
    above = counts.flip(0).cumsum(0)
    turn = int(torch.searchsorted(above, wanted))
    before = int(above[turn - 1]) if turn else 0
    return len(counts) - 1 - turn, wanted - before
