"""The plain Dirichlet split: each class is divided among the clients by its own draw from Dir(alpha)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from fedfuse.data.partition.assignment import Assignment, Indices
from fedfuse.data.partition.base import (
    Counts,
    DrawnPartition,
    check_minimum,
    counts_from_shares,
    deal,
    enough_for_all,
    redraw,
    shuffled_classes,
)


class Dirichlet(DrawnPartition):
    """Each class is divided by a draw from Dir(alpha); small alpha: few classes per client, very different sizes.

    Every example is given to someone.
    """

    kind: Literal["dirichlet"] = "dirichlet"
    alpha: float = Field(gt=0, le=1e6, description="Concentration; small is heterogeneous, large is iid.")
    min_examples: int = Field(1, ge=1, description="Draw again until every client has at least this many examples.")

    def draw(self, labels: Indices, classes: int, random: np.random.Generator) -> Assignment:
        check_minimum(self.min_examples, self.clients, len(labels))
        pools = shuffled_classes(labels, classes, random)
        wish = f"min_examples = {self.min_examples} for every client"
        return deal(pools, redraw(lambda: self._counts(pools, random), self.alpha, self.clients, wish))

    def _counts(self, pools: list[Indices], random: np.random.Generator) -> Counts | None:
        shares = random.dirichlet(np.full(self.clients, self.alpha), size=len(pools))
        counts = np.stack([counts_from_shares(row, len(pool)) for row, pool in zip(shares, pools, strict=True)])
        return counts if enough_for_all(counts, self.min_examples) else None
