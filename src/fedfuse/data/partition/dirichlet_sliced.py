"""The Dirichlet split of the FedDF and FedGKD code: groups of ten clients, then everything re-cut into equal slices."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from fedfuse.data.partition.assignment import Assignment, Indices
from fedfuse.data.partition.balance import balanced_counts
from fedfuse.data.partition.base import Counts, DrawnPartition, deal, enough_for_all, redraw, shuffled_classes


class DirichletSliced(DrawnPartition):
    """As FedDF's and FedGKD's code: groups of ten clients, then everything cut anew into equal slices.

    All clients end equally large (by at most one), and neighbours share classes at the slices' borders.
    """

    kind: Literal["dirichlet_sliced"] = "dirichlet_sliced"
    alpha: float = Field(gt=0, le=1e6, description="Concentration; small is heterogeneous, large is iid.")
    group_clients: int = Field(10, ge=1, description="Clients that divide one random part of the data; 10 in the code.")

    def draw(self, labels: Indices, classes: int, random: np.random.Generator) -> Assignment:
        order = random.permutation(len(labels))
        groups = np.split(order, self._bounds(len(labels)))
        drawn = [
            self._draw_group(group, self._size(number), labels, classes, random).positions
            for number, group in enumerate(groups)
        ]
        return Assignment.evenly(np.concatenate(drawn), self.clients)

    def _size(self, number: int) -> int:
        return min(self.group_clients, self.clients - number * self.group_clients)

    def _bounds(self, examples: int) -> list[int]:
        return [
            start * examples // self.clients for start in range(self.group_clients, self.clients, self.group_clients)
        ]

    def _draw_group(
        self, group: Indices, clients: int, labels: Indices, classes: int, random: np.random.Generator
    ) -> Assignment:
        pools = [group[where] for where in shuffled_classes(labels[group], classes, random)]
        sizes = np.array([len(pool) for pool in pools])
        fair_share = len(group) / clients

        def counts() -> Counts | None:
            drawn = balanced_counts(sizes, np.zeros(clients, np.int64), fair_share, self.alpha, random)
            return drawn if enough_for_all(drawn, int(0.5 * fair_share)) else None

        wish = "at least half of the mean size for every client"
        return deal(pools, redraw(counts, self.alpha, self.clients, wish))
