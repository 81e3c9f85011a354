"""Examples in memory: what a dataset is once it has been read, before anyone owns it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Owners:
    """Whose each example is, in data that comes already separated by client: a number per example, and their names."""

    numbers: Tensor
    names: tuple[str, ...]

    def select(self, where: Tensor) -> Owners:
        return Owners(self.numbers[where], self.names)


@dataclass(frozen=True)
class Examples:
    """Inputs as they lie in memory (images: uint8, N x C x H x W; features: float32, N x D) and int64 labels."""

    inputs: Tensor
    labels: Tensor
    owners: Owners | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, indices: Tensor | Sequence[int]) -> Examples:
        """The examples at these positions, copied in this order."""
        where = torch.as_tensor(indices, dtype=torch.long)
        owners = None if self.owners is None else self.owners.select(where)
        return Examples(self.inputs[where], self.labels[where], owners)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return tuple(self.inputs.shape[1:])


@dataclass(frozen=True)
class Normalisation:
    """Per-channel constants; images are first scaled from 0..255 to 0..1."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


@dataclass(frozen=True)
class Dataset:
    """A named dataset with its official split, if it has one, and the constants that go with it."""

    name: str
    train: Examples
    test: Examples | None
    class_names: tuple[str, ...]
    normalisation: Normalisation
    origin: str
    """Where it was read from, for the log: file names, or 'generated', or 'scikit-learn'."""

    @property
    def classes(self) -> int:
        return len(self.class_names)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.train.shape
