"""Batches of one client's examples, normalised once where nothing happens to them that depends on the batch."""

from __future__ import annotations

import torch
from torch import Tensor

from fedfuse.data import Examples, Transform
from fedfuse.data.dataset import kind_of
from fedfuse.runtime.compute import Compute

READY_BYTES = 64_000_000
"""Up to this size a client's inputs are normalised as a whole; the numbers are the same either way."""


class BatchLoader:
    """Examples as (inputs, labels) on the device.

    ``trims`` is whether a batch of texts is as long as its longest. Else all batches are as long as any could be, and
    nothing about a text can depend on the others of its batch.
    """

    def __init__(self, examples: Examples, transform: Transform, compute: Compute, trims: bool = True) -> None:
        self.inputs, self.transform, self.compute = examples.inputs, transform, compute
        self.whole = not trims and kind_of(examples.inputs) == "texts"
        self.labels = examples.labels.to(compute.device)
        small = 4 * examples.inputs.numel() <= READY_BYTES
        fixed = not transform.augments and kind_of(examples.inputs) != "texts"
        self.ready = compute.inputs(transform(examples.inputs)) if small and fixed else None

    def batch(self, where: Tensor, views: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """The examples at these positions; ``views`` decides the augmentation, if there is any."""
        if self.ready is not None:
            inputs = self.ready[where]
        elif self.whole:
            inputs = self.inputs[where].long()
        else:
            inputs = self.transform(self.transform.augment(self.inputs[where], views))
        return self.compute.inputs(inputs), self.labels[where]
