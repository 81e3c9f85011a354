"""A range cut into batches."""

from __future__ import annotations

from itertools import pairwise


def slices(size: int, batch_size: int) -> list[slice]:
    """``range(size)`` in order, cut into batches."""
    starts = list(range(0, size, batch_size))
    if len(starts) > 1 and size - starts[-1] == 1:
        starts.pop()
    return [slice(start, end) for start, end in pairwise([*starts, size])]


def number_of_slices(size: int, batch_size: int) -> int:
    """How many those are, for sizes that nobody would list."""
    count = -(-size // batch_size)
    return count - 1 if count > 1 and size - (count - 1) * batch_size == 1 else count


def steady_slices(size: int, batch_size: int) -> list[slice]:
    """``range(size)`` in order, cut into batches of which none is small; a rest of less than a quarter joins the last.

    For predictions: kernels for very few rows round otherwise, and what a network says should not depend on that.
    """
    count = max(1, (size + batch_size - max(1, batch_size // 4)) // batch_size)
    starts = [batch_size * number for number in range(count)]
    return [slice(start, end) for start, end in pairwise([*starts, size])]


def mean_size(size: int, batch_size: int) -> float:
    """Of those batches, the last of which may be another."""
    return size / number_of_slices(size, batch_size)


def even_slices(size: int, batch_size: int) -> list[slice]:
    """``range(size)`` in order, cut into batches of equal size, give or take one, and of two at least.

    For statistics of batches: a small last one would count as much as the others and know far less.
    """
    parts = max(1, min(-(-size // batch_size), size // 2))
    borders = [size * part // parts for part in range(parts + 1)]
    return [slice(start, end) for start, end in pairwise(borders)]


def spread(size: int, most: int) -> list[int]:
    """At most so many positions of ``range(size)``, evenly spread over all of it."""
    kept = min(size, most)
    return [place * size // kept for place in range(kept)]
