"""The order in which examples are visited: a seeded permutation per epoch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import torch
from torch import Tensor

from fedfuse.core.randomness import Key


def epoch_batches(size: int, batch_size: int, key: Key) -> list[Tensor]:
    """Cut one permutation of ``range(size)`` into batches.

    A trailing single example joins the batch before it, because BatchNorm cannot normalise one value;
    no example is ever dropped.
    """
    order = torch.randperm(size, generator=key.torch())
    batches = list(order.split(batch_size))
    if len(batches) > 1 and len(batches[-1]) == 1:
        batches[-2:] = [torch.cat(batches[-2:])]
    return batches


def endless_batches(size: int, batch_size: int, key: Key) -> Iterator[Tensor]:
    """Epoch after epoch, each with its own permutation."""
    for epoch in count():
        yield from epoch_batches(size, batch_size, key.child("epoch", epoch))
