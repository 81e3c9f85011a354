"""The order in which examples are visited.

Texts are visited in batches of similar length, so that little padding is computed: the permutation is cut into windows
of 50 batches, each window is sorted by length, and the batches are shuffled again.

A trailing single example joins the batch before it, because BatchNorm cannot normalise one value; no example is
ever dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import torch
from torch import Tensor

from fedfuse.core.randomness import Key
from fedfuse.core.slices import slices

WINDOW = 50
"""Batches among which texts of similar length are looked for."""


def epoch_batches(size: int, batch_size: int, key: Key | None, lengths: Tensor | None = None) -> list[Tensor]:
    """Cut one permutation of ``range(size)``, or without a key the range itself, into batches; lengths of texts."""
    if key is None:
        order = torch.arange(size)
        return [order[where] for where in slices(size, batch_size)]
    random = key.torch()
    order = torch.randperm(size, generator=random)
    if lengths is None:
        return [order[where] for where in slices(size, batch_size)]
    windows = order.split(WINDOW * batch_size)
    order = torch.cat([window[lengths[window].argsort(stable=True)] for window in windows])
    batches = [order[where] for where in slices(size, batch_size)]
    return [batches[position] for position in torch.randperm(len(batches), generator=random).tolist()]


def endless_batches(size: int, batch_size: int, key: Key, lengths: Tensor | None = None) -> Iterator[Tensor]:
    """Epoch after epoch, each with its own permutation."""
    for epoch in count():
        yield from epoch_batches(size, batch_size, key.child("epoch", epoch), lengths)
