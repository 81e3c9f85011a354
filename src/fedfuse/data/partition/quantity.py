"""Quantity skew: sizes drawn from Dir(alpha), labels as in the whole dataset."""

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
    enough_for_all,
    redraw,
)


class Quantity(DrawnPartition):
    """Sizes from Dir(alpha), classes as in the whole: clients differ in how much they have, not in what they have."""

    kind: Literal["quantity"] = "quantity"
    alpha: float = Field(gt=0, le=1e6, description="Concentration; small is unequal, large is equal.")
    min_examples: int = Field(1, ge=1, description="Draw again until every client has at least this many examples.")

    def draw(self, labels: Indices, classes: int, random: np.random.Generator) -> Assignment:
        check_minimum(self.min_examples, self.clients, len(labels))
        order = random.permutation(len(labels))
        wish = f"min_examples = {self.min_examples} for every client"
        counts = redraw(lambda: self._counts(len(labels), random), self.alpha, self.clients, wish)
        return Assignment(order, np.cumsum(counts))

    def _counts(self, examples: int, random: np.random.Generator) -> Counts | None:
        counts = counts_from_shares(random.dirichlet(np.full(self.clients, self.alpha)), examples)
        return counts if enough_for_all(counts, self.min_examples) else None
