"""The Dirichlet split of the FedED thesis code: one matrix of shares, rounded down, so that a few examples are lost."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from fedfuse.data.partition.assignment import Assignment, Indices
from fedfuse.data.partition.base import Counts, DrawnPartition, deal, enough_for_all, redraw, shuffled_classes

LEAST_COLUMN_SUM = 0.01
"""As in the thesis code."""


class DirichletFloor(DrawnPartition):
    """As the FedED thesis: one matrix of shares, rounded down, so that a few examples are lost.

    Fewer than classes x clients examples belong to nobody. Other than in the thesis code, a draw that rounds a client
    down to no example at all is drawn again too.
    """

    kind: Literal["dirichlet_floor"] = "dirichlet_floor"
    alpha: float = Field(gt=0, le=1e6, description="Concentration; small is heterogeneous, large is iid.")

    def draw(self, labels: Indices, classes: int, random: np.random.Generator) -> Assignment:
        pools = shuffled_classes(labels, classes, random)
        sizes = np.array([len(pool) for pool in pools])
        wish = "an example for every client"
        return deal(pools, redraw(lambda: self._counts(sizes, random), self.alpha, self.clients, wish))

    def _counts(self, sizes: Counts, random: np.random.Generator) -> Counts | None:
        shares = random.dirichlet(np.full(self.clients, self.alpha), size=len(sizes))
        # A share that is whole but for rounding, such as a single client's 1 - 1e-16, must not lose an example.
        counts = np.floor(shares * sizes[:, None] + 1e-9).astype(np.int64)
        return counts if shares.sum(axis=0).min() > LEAST_COLUMN_SUM and enough_for_all(counts, 1) else None
