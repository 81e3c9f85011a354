"""The balance mask that FedDF, FedBE, MOON and NIID-Bench share: a client with its fair share gets no more classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedfuse.data.partition.base import Counts, counts_from_shares


def balanced_counts(
    class_sizes: Counts, held: Counts, fair_share: float, alpha: float, random: np.random.Generator
) -> Counts:
    """How many of each class every client gets (classes x clients); ``held`` is what clients have beforehand."""
    held = held.copy()
    rows = []
    for size in class_sizes:
        shares = random.dirichlet(np.full(len(held), alpha))
        rows.append(counts_from_shares(_masked(shares, held < fair_share), int(size)))
        held += rows[-1]
    return np.stack(rows)


def _masked(shares: NDArray[np.float64], open_clients: NDArray[np.bool_]) -> NDArray[np.float64]:
    masked = shares * open_clients
    # With a tiny alpha all mass can lie on full clients, where the papers' code divides by zero.
    if masked.sum() <= 0:
        masked = open_clients.astype(np.float64) if open_clients.any() else np.ones_like(shares)
    return np.asarray(masked / masked.sum())
