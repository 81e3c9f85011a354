"""The Dirichlet split of FedBE, MOON and NIID-Bench: balance mask, and redraws until no client is too small."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from fedfuse.core.errors import ConfigError
from fedfuse.data.partition.assignment import Assignment, Indices
from fedfuse.data.partition.balance import balanced_counts
from fedfuse.data.partition.base import (
    Counts,
    DrawnPartition,
    check_minimum,
    deal,
    enough_for_all,
    redraw,
    shuffled_classes,
)


class DirichletBalanced(DrawnPartition):
    """As FedBE, MOON and NIID-Bench: who has a fair share gets no more classes; redrawn until nobody is too small.

    FedBE: alpha 0.1 and 2 guaranteed images per class. Those are reserved first, so clients stay disjoint.
    """

    kind: Literal["dirichlet_balanced"] = "dirichlet_balanced"
    alpha: float = Field(gt=0, le=1e6, description="Concentration; small is heterogeneous, large is iid.")
    min_examples: int = Field(10, ge=1, description="Draw again until every client has at least this many examples.")
    guaranteed_per_class: int = Field(0, ge=0, description="Examples of every class that each client surely gets.")

    def draw(self, labels: Indices, classes: int, random: np.random.Generator) -> Assignment:
        check_minimum(self.min_examples, self.clients, len(labels))
        pools = shuffled_classes(labels, classes, random)
        reserved = np.full((classes, self.clients), self.guaranteed_per_class)
        free = np.array([len(pool) for pool in pools]) - reserved.sum(axis=1)
        self._check_guarantee(free)
        fair_share = len(labels) / self.clients

        def counts() -> Counts | None:
            drawn = reserved + balanced_counts(free, reserved.sum(axis=0), fair_share, self.alpha, random)
            return drawn if enough_for_all(drawn, self.min_examples) else None

        wish = f"min_examples = {self.min_examples} for every client"
        return deal(pools, redraw(counts, self.alpha, self.clients, wish))

    def _check_guarantee(self, free: Indices) -> None:
        if free.min() < 0:
            label = int(free.argmin())
            needed = self.guaranteed_per_class * self.clients
            there = needed + int(free[label])
            raise ConfigError(
                f"partition.guaranteed_per_class = {self.guaranteed_per_class} for {self.clients} clients needs "
                f"{needed} examples of class {label}, which has {there}; lower it or use fewer clients"
            )
