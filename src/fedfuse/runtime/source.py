"""Distillation inputs once they are in memory. Labels are not here, so no method can read them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedfuse.core.randomness import Key
from fedfuse.data import Transform
from fedfuse.runtime.compute import Compute

PREDICTION_BATCH = 500
"""Fixed, so that predictions do not depend on who computes them or in what order they are needed."""


@dataclass(frozen=True)
class Source:
    """Unlabelled inputs with their own normalisation, addressed by index."""

    name: str
    raw: Tensor
    transform: Transform
    compute: Compute
    overlap: int = 0
    """How many of these inputs also lie in a client's data (exact copies)."""

    def __len__(self) -> int:
        return len(self.raw)

    def inputs(self, indices: Tensor) -> Tensor:
        """The un-augmented inputs at these positions."""
        return self.compute.inputs(self.transform(self.raw[indices]))

    def augmented(self, indices: Tensor, key: Key) -> Tensor:
        """A fresh augmented view of the inputs at these positions."""
        return self.compute.inputs(self.transform(self.transform.augment(self.raw[indices], key.torch())))

    def all_indices(self) -> Tensor:
        return torch.arange(len(self))
