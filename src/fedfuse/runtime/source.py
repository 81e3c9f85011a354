"""Distillation inputs once they are in memory. Labels are not here, so that no method can read them by mistake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from fedfuse.core.hashes import order_of
from fedfuse.core.randomness import Key
from fedfuse.core.slices import slices, steady_slices
from fedfuse.data import Transform
from fedfuse.data.dataset import lengths
from fedfuse.runtime.compute import Compute

PREDICTION_BATCH, CACHED_BATCH = 500, 64
"""Inputs about which a network is asked at a time: fixed, so that predictions do not depend on who computes them.

On a CPU there are fewer, so that the layers of one batch stay in its cache."""


def prediction_batch(device: torch.device) -> int:
    """Inputs at a time on this device."""
    return CACHED_BATCH if device.type == "cpu" else PREDICTION_BATCH


class Shown(Protocol):
    """Inputs that a student is shown, addressed by index."""

    def __len__(self) -> int: ...

    @property
    def compute(self) -> Compute:
        """Where the student is."""

    @property
    def lengths(self) -> Tensor | None:
        """How many tokens each text has; None for other inputs."""

    @property
    def mixed(self) -> Tensor:
        """All positions, in an order that depends on the inputs alone."""

    def inputs(self, indices: Tensor) -> Any:
        """What the student's network is called with to see these as they are."""

    def augmented(self, indices: Tensor, key: Key) -> Any:
        """A fresh view of them."""


@dataclass(frozen=True)
class Source:
    """Public inputs with their own normalisation, addressed by index."""

    name: str
    raw: Tensor
    transform: Transform
    compute: Compute
    overlap: int = 0
    """How many of these inputs also lie in a client's data (exact copies)."""
    labels: Tensor | None = None
    """Not there unless a part of the method says that it reads them."""
    incomplete: str | None = None
    """One sentence if the inputs' files held less than the dataset that they are named after."""
    test_overlap: int = 0
    """How many of these inputs are also test inputs (exact copies)."""
    draw: Callable[[int, Key], Tensor] | None = None
    """Makes new inputs, where every step of a distillation has its own; ``raw`` are some of them."""

    def __len__(self) -> int:
        return len(self.raw)

    @property
    def lengths(self) -> Tensor | None:
        """How many tokens each text has; None for other inputs."""
        return lengths(self.raw)

    def inputs(self, indices: Tensor) -> Tensor:
        """The un-augmented inputs at these positions."""
        return self.compute.inputs(self.transform(self.raw[indices]))

    def batches(self, indices: Tensor) -> list[Tensor]:
        """These positions in the batches in which they are made ready to be asked about.

        Batches of texts are larger: each is padded to its longest text, so that others could change last bits.
        """
        if self.lengths is not None:
            return [indices[rows] for rows in slices(len(indices), PREDICTION_BATCH)]
        return [indices[rows] for rows in steady_slices(len(indices), prediction_batch(self.compute.device))]

    def augmented(self, indices: Tensor, key: Key) -> Tensor:
        """A fresh augmented view of the inputs at these positions."""
        return self.compute.inputs(self.transform(self.transform.augment(self.raw[indices], key.torch())))

    def part(self, indices: Tensor) -> Source:
        """Only the inputs at these positions."""
        labels = None if self.labels is None else self.labels[indices]
        return replace(self, raw=self.raw[indices], labels=labels)

    def drawn(self, count: int, key: Key) -> Source:
        """As many new inputs in the place of these."""
        assert self.draw is not None, "only sources of fresh inputs can be asked for some"
        return replace(self, raw=self.draw(count, key.child("draw")))

    @cached_property
    def mixed(self) -> Tensor:
        """All positions, in an order in which it does not matter how the source lay."""
        return order_of(self.raw)

    def all_indices(self) -> Tensor:
        return torch.arange(len(self))
