"""How many inputs of one set are exact copies of inputs of another, quickly also where the other one is large."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[Any]

BLOCK = 4096
"""Rows whose bytes are looked at together."""
WORD = 8


def copies(rows: Rows, others: Iterable[Rows]) -> int:
    """How many of ``rows`` are among ``others``, which come in blocks; all are of one type and one shape."""
    checksums = np.sort(_checksums(rows))
    held = {row.tobytes() for block in others for row in block[_are_among(_checksums(block), checksums)]}
    return sum(row.tobytes() in held for row in rows)


def _are_among(numbers: NDArray[np.uint64], known: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which numbers are known; ``known`` is sorted."""
    if not len(known):
        return np.zeros(len(numbers), dtype=np.bool_)
    nearest = known[np.searchsorted(known, numbers).clip(max=len(known) - 1)]
    return np.asarray(nearest == numbers)


def _checksums(rows: Rows) -> NDArray[np.uint64]:
    """A number of each row's bytes: equal for equal rows, and hardly ever for others."""
    size = rows.itemsize * int(np.prod(rows.shape[1:]))
    width = -(-size // WORD)
    factors = np.random.default_rng(0).integers(1, 2**64, size=width, dtype=np.uint64)
    found = np.empty(len(rows), dtype=np.uint64)
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        words = np.zeros((len(block), width * WORD), dtype=np.uint8)
        words[:, :size] = np.ascontiguousarray(block).reshape(len(block), -1).view(np.uint8)
        found[start : start + BLOCK] = (words.view(np.uint64) * factors).sum(axis=1)  # beyond 64 bits is cut off
    return found
