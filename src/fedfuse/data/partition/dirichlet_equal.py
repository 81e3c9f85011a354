"""The Dirichlet split of FedAUX: shares from Dir(alpha), then scaled so that all clients are equally large.

Sinkhorn's iteration scales the rows (classes) and columns (clients) of the drawn matrix in turn, until the classes keep
their sizes and every client has the same number of examples; with equal classes the shares are doubly stochastic.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedfuse.data.partition.assignment import Assignment, Indices
from fedfuse.data.partition.base import Counts, DrawnPartition, deal, redraw, shuffled_classes

ITERATIONS = 2000
LEAST_SHARE = 1e-6
"""Added to every share, since with a tiny alpha some underflow to zero and no scaling could fill their client."""


class DirichletEqual(DrawnPartition):
    """As FedAUX: shares from Dir(alpha), scaled until all clients are equally large.

    Skewed classes at equal sizes (by at most one), so that only the labels differ between clients.
    """

    kind: Literal["dirichlet_equal"] = "dirichlet_equal"
    alpha: float = Field(gt=0, le=1e6, description="Concentration; small is heterogeneous, large is iid.")

    def draw(self, labels: Indices, classes: int, random: np.random.Generator) -> Assignment:
        pools = shuffled_classes(labels, classes, random)
        sizes = np.array([len(pool) for pool in pools])

        def counts() -> Counts | None:
            shares = random.dirichlet(np.full(self.clients, self.alpha), size=classes) + LEAST_SHARE
            drawn = _rounded(_sinkhorn(shares, sizes), sizes)
            return drawn if np.ptp(drawn.sum(axis=0)) <= 1 else None

        return deal(pools, redraw(counts, self.alpha, self.clients, "equally large clients"))


def _sinkhorn(shares: NDArray[np.float64], sizes: Counts) -> NDArray[np.float64]:
    """``shares`` scaled to row sums ``sizes`` (exactly) and equal column sums (nearly); a class may be empty."""
    fair = sizes.sum() / shares.shape[1]
    for _ in range(ITERATIONS):
        shares = shares * (fair / shares.sum(axis=0))
        totals = shares.sum(axis=1)
        shares = shares * np.divide(sizes, totals, out=np.zeros_like(totals), where=totals > 0)[:, None]
        if np.abs(shares.sum(axis=0) - fair).max() < 0.1:
            break
    return shares


def _rounded(expected: NDArray[np.float64], sizes: Counts) -> Counts:
    """Whole numbers: what rounding down leaves of a class goes, one each, to the clients that have the least so far."""
    counts = np.floor(expected + 1e-9).astype(np.int64)
    for row, left in zip(counts, sizes - counts.sum(axis=1), strict=True):
        row[np.argsort(counts.sum(axis=0), kind="stable")[:left]] += 1
    return counts
