"""Which neurons of different clients are one and the same: the matching of FedMA (Wang et al., 2020) in one layer.

A neuron is a vector w = [incoming weights | bias]. Global neurons are drawn from N(mu0, sigma0^2 I), a client's neuron
is a global one plus noise from N(0, sigma^2 I), and which ones a client has follows a beta-Bernoulli process with mass
gamma. Where c_i clients of J have global neuron i, with sum_i of their vectors, its posterior has

    precision S_i = 1 / sigma0^2 + c_i / sigma^2   and mean W_i / S_i,   W_i = mu0 / sigma0^2 + sum_i / sigma^2

Given all other clients, a client's neurons go to different global ones so that the sum of gains is the largest:

    neuron i:   ||w / sigma^2 + W_i||^2 / (1 / sigma^2 + S_i) - ||W_i||^2 / S_i + log(c_i / (J - c_i))
    r-th new:   the same with c = 0 and sum = 0, but for the last term          + 2 log(gamma / J) - 2 log r

(In log(c / (J - c)) FedMA's code takes c for at most 10, and PFNM, from which it stems, prints the term twice.)

Clients are placed by decreasing width, then taken out and placed again in random orders. Everything is in double
precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedfuse.core.randomness import Key

WIDTH_LIMIT = 700
"""Where FedMA's code slows growth: a layer of L neurons gets at most max(700 - L, 1) new ones from one client."""


@dataclass(frozen=True)
class Prior:
    """What is believed about neurons before any is seen; ``mean`` has one number for each of their features."""

    mean: Tensor
    sigma: float
    sigma0: float
    gamma: float
    most_popular: int = 10
    """More clients than these add nothing to the gain of a neuron that they have."""

    def precision(self, counts: Tensor) -> Tensor:
        """S: of global neurons that ``counts`` clients have."""
        return self.sigma0**-2 + counts * self.sigma**-2

    def weighted(self, sums: Tensor) -> Tensor:
        """W: the posterior mean times the precision."""
        return self.mean * self.sigma0**-2 + sums * self.sigma**-2

    def fit(self, neurons: Tensor, sums: Tensor, counts: Tensor) -> Tensor:
        """The first two terms of a gain, for each of the neurons (rows) with each of the global ones (columns)."""
        own, total = neurons * self.sigma**-2, self.weighted(sums)
        norms, before = total.square().sum(dim=1), self.precision(counts)
        squares = own.square().sum(dim=1, keepdim=True) + 2 * own @ total.T + norms
        return squares / (before + self.sigma**-2) - norms / before


@dataclass(frozen=True)
class Matching:
    """``assignments`` holds, for each client, the global index of each of its neurons; ``neurons`` the global ones."""

    assignments: tuple[Tensor, ...]
    neurons: Tensor


def match(matrices: Sequence[Tensor], prior: Prior, iterations: int, key: Key) -> Matching:
    """Match the neurons (rows) of all clients' matrices; ``iterations`` sweeps follow the first placement."""
    matrices = [matrix.double() for matrix in matrices]
    table = _Table(matrices, prior)
    for client in sorted(range(len(matrices)), key=lambda client: -len(matrices[client])):
        table.place(client)
    for sweep in range(iterations):
        for client in key.child("sweep", sweep).numpy().permutation(len(matrices)).tolist():
            table.take_out(client)
            table.place(client)
    assignments = tuple(table.assignments[client] for client in range(len(matrices)))
    return Matching(assignments, posterior_mean(matrices, assignments, prior))


def posterior_mean(matrices: Sequence[Tensor], assignments: Sequence[Tensor], prior: Prior) -> Tensor:
    """W / S of every global neuron, summed in client order."""
    width = 1 + max(int(assignment.max()) for assignment in assignments)
    sums, counts = _nobody(width, prior)
    for matrix, assignment in zip(matrices, assignments, strict=True):
        sums[assignment] += matrix
        counts[assignment] += 1
    return prior.weighted(sums) / prior.precision(counts).unsqueeze(1)


def gains(neurons: Tensor, sums: Tensor, counts: Tensor, prior: Prior, clients: int) -> Tensor:
    """What each neuron of a client (rows) gains as each of the global ones, and then as each new one (columns)."""
    popularity = counts.clamp_max(prior.most_popular)
    existing = prior.fit(neurons, sums, counts) + (popularity / (clients - popularity)).log()
    # At the limit a client must still find room for all its neurons.
    limit = max(WIDTH_LIMIT - len(sums), 1, len(neurons) - len(sums))
    ranks = torch.arange(1, min(limit, len(neurons)) + 1, dtype=torch.float64)
    new = prior.fit(neurons, *_nobody(1, prior)) + 2 * math.log(prior.gamma / clients) - 2 * ranks.log()
    return torch.cat([existing, new], dim=1)


class _Table:
    """The global neurons while clients come and go: the sum of the vectors that each stands for, and their number."""

    def __init__(self, matrices: Sequence[Tensor], prior: Prior) -> None:
        self.matrices, self.prior = matrices, prior
        self.sums, self.counts = _nobody(0, prior)
        self.assignments: dict[int, Tensor] = {}

    def place(self, client: int) -> None:
        matrix = self.matrices[client]
        assignment = self._best(matrix)
        sums, counts = _nobody(max(int(assignment.max()) + 1 - len(self.sums), 0), self.prior)
        self.sums, self.counts = torch.cat([self.sums, sums]), torch.cat([self.counts, counts])
        self.sums[assignment] += matrix
        self.counts[assignment] += 1
        self.assignments[client] = assignment

    def take_out(self, client: int) -> None:
        """Without this client; a neuron that nobody else has disappears."""
        assignment = self.assignments.pop(client)
        self.sums[assignment] -= self.matrices[client]
        self.counts[assignment] -= 1
        kept = self.counts > 0
        self.sums, self.counts = self.sums[kept], self.counts[kept]
        renumbered = kept.cumsum(dim=0) - 1
        self.assignments = {other: renumbered[where] for other, where in self.assignments.items()}

    def _best(self, matrix: Tensor) -> Tensor:
        from scipy.optimize import linear_sum_assignment  # half a second that other methods need not pay

        if not len(self.sums):
            return torch.arange(len(matrix))  # all new, and in whatever order the gain is the same
        table = gains(matrix, self.sums, self.counts, self.prior, len(self.matrices))
        # Ranks cost more and more, so the new ones that are taken are the first: their indices have no holes.
        _, columns = linear_sum_assignment(table.numpy(), maximize=True)
        return torch.from_numpy(columns)


def _nobody(width: int, prior: Prior) -> tuple[Tensor, Tensor]:
    """Sums and counts of global neurons that no client has yet."""
    return torch.zeros(width, len(prior.mean), dtype=torch.float64), torch.zeros(width, dtype=torch.float64)
