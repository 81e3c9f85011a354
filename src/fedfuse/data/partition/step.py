"""The Step split of FedBE: every client has a few major classes and a few images of every other class.

CIFAR-10 in the paper: 10 clients with 2 major classes of 1,960 images and 8 minor ones of 10.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedfuse.core.errors import ConfigError
from fedfuse.data.partition.assignment import Assignment, Indices
from fedfuse.data.partition.base import Counts, DrawnPartition, deal, shuffled_classes


class Step(DrawnPartition):
    """FedBE's Step: a few major classes per client, and a few examples of every other class.

    What the minor clients of a class leave is divided equally among its major clients; nothing is left over.
    """

    kind: Literal["step"] = "step"
    major_classes: int = Field(ge=1, description="Classes of which a client has many examples.")
    minor_per_class: int = Field(ge=0, description="Examples of each other class that a client has.")

    def draw(self, labels: Indices, classes: int, random: np.random.Generator) -> Assignment:
        self._check_major(classes)
        pools = shuffled_classes(labels, classes, random)
        major = self._draw_major(classes, random)
        return deal(pools, np.stack([self._counts(label, len(pools[label]), major[label]) for label in range(classes)]))

    def _check_major(self, classes: int) -> None:
        if self.major_classes > classes:
            raise ConfigError(
                f"partition.major_classes = {self.major_classes} is more than the {classes} classes; lower it"
            )
        if self.major_classes * self.clients < classes:
            raise ConfigError(
                f"partition.major_classes = {self.major_classes} for {self.clients} clients covers at most "
                f"{self.major_classes * self.clients} of {classes} classes; raise major_classes or clients"
            )

    def _draw_major(self, classes: int, random: np.random.Generator) -> NDArray[np.bool_]:
        """Which client has which class as a major one (classes x clients); classes differ by one client at most."""
        major = np.zeros((classes, self.clients), dtype=np.bool_)
        deck: list[int] = []
        for client in range(self.clients):
            while major[:, client].sum() < self.major_classes:
                if not deck:
                    fresh = random.permutation(classes).tolist()
                    # Classes that this client took from the last deck go to the back, so none comes twice.
                    deck = sorted(fresh, key=lambda label: bool(major[label, client]))
                major[deck.pop(0), client] = True
        return major

    def _counts(self, label: int, size: int, major: NDArray[np.bool_]) -> Counts:
        owners = int(major.sum())
        remaining = size - self.minor_per_class * (self.clients - owners)
        if remaining < owners:
            raise ConfigError(
                f"partition.minor_per_class = {self.minor_per_class} for {self.clients} clients leaves too little of "
                f"class {label}, which has {size} examples; lower minor_per_class or clients"
            )
        counts = np.full(self.clients, self.minor_per_class, dtype=np.int64)
        counts[major] = remaining // owners
        counts[np.flatnonzero(major)[: remaining % owners]] += 1
        return counts
