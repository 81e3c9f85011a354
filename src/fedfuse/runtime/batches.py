"""The order in which examples are visited.

A trailing single example joins the batch before it, because BatchNorm cannot normalise one value; no example is
ever dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, pairwise

import torch
from torch import Tensor

from fedfuse.core.randomness import Key


def epoch_batches(size: int, batch_size: int, key: Key) -> list[Tensor]:
    """Cut one permutation of ``range(size)`` into batches."""
    order = torch.randperm(size, generator=key.torch())
    return [order[where] for where in slices(size, batch_size)]


def slices(size: int, batch_size: int) -> list[slice]:
    """``range(size)`` in order, cut into batches."""
    starts = list(range(0, size, batch_size))
    if len(starts) > 1 and size - starts[-1] == 1:
        starts.pop()
    return [slice(start, end) for start, end in pairwise([*starts, size])]


def endless_batches(size: int, batch_size: int, key: Key) -> Iterator[Tensor]:
    """Epoch after epoch, each with its own permutation."""
    for epoch in count():
        yield from epoch_batches(size, batch_size, key.child("epoch", epoch))
