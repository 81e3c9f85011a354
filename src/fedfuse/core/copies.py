"""How many inputs of one set are exact copies of inputs of another, quickly also where the other one is large."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[Any]

BLOCK = 4096
"""Rows whose bytes are looked at together."""
WORD = 8


def copies(rows: Rows, others: Rows) -> int:
    """How many of ``rows`` are among ``others``; both are of one type and, but for the number of rows, of one shape."""
    alike = np.isin(_checksums(others), _checksums(rows))  # other rows with equal checksums are few, and looked at
    held = {row.tobytes() for row in others[alike]}
    return sum(row.tobytes() in held for row in rows)


def _checksums(rows: Rows) -> NDArray[np.uint64]:
    """A number of each row's bytes: equal for equal rows, and hardly ever for others."""
    width = -(-rows[:1].nbytes // WORD)
    factors = np.random.default_rng(0).integers(1, 2**64, size=width, dtype=np.uint64, endpoint=False)
    found = np.empty(len(rows), dtype=np.uint64)
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        words = np.zeros((len(block), width * WORD), dtype=np.uint8)
        words[:, : block[:1].nbytes] = np.ascontiguousarray(block).reshape(len(block), -1).view(np.uint8)
        found[start : start + BLOCK] = (words.view(np.uint64) * factors).sum(axis=1)  # beyond 64 bits is cut off
    return found
