"""A range cut into batches."""

from __future__ import annotations

from itertools import pairwise


def slices(size: int, batch_size: int) -> list[slice]:
    """``range(size)`` in order, cut into batches."""
    starts = list(range(0, size, batch_size))
    if len(starts) > 1 and size - starts[-1] == 1:
        starts.pop()
    return [slice(start, end) for start, end in pairwise([*starts, size])]


def even_slices(size: int, batch_size: int) -> list[slice]:
    """``range(size)`` in order, cut into batches of equal size, give or take one, and of two at least.

    For statistics of batches: a small last one would count as much as the others and know far less.
    """
    parts = max(1, min(-(-size // batch_size), size // 2))
    borders = [size * part // parts for part in range(parts + 1)]
    return [slice(start, end) for start, end in pairwise(borders)]
