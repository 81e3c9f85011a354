"""What all partitions (non-IID splits) share: examples in, the sorted positions of each client out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.core.part import Part
from fedfuse.core.randomness import Key
from fedfuse.data.dataset import Owners
from fedfuse.data.partition.assignment import Assignment, Indices

Counts = NDArray[np.int64]

TRIES = 5000
"""Draws before a partition gives up; FedDF's rule at alpha 0.01 needs about 250 per group of ten clients."""


class Partition(Part):
    """Divides the training examples among clients."""

    kind: str

    @abstractmethod
    def assign(
        self, labels: Tensor | Indices, classes: int, key: Key, owners: Owners | None = None
    ) -> Sequence[Indices]:
        """For every client the sorted positions of its examples; no position is given twice.

        ``owners`` are the clients that the data itself comes with, if any.
        """

    def names(self, assignment: Assignment, owners: Owners | None) -> Sequence[str] | None:
        """What the clients of this assignment are called; None if they have no names but their numbers."""
        return None


def checked(kind: str, parts: Sequence[Indices], examples: int) -> Assignment:
    """The assignment, without what a partition from outside may do wrong."""
    assignment = Assignment.of(parts)
    if not assignment.sizes.all() or not len(assignment):
        raise ConfigError(f"partition {kind} leaves a client without examples")
    if assignment.positions.min() < 0 or assignment.positions.max() >= examples:
        raise ConfigError(f"partition {kind} gives positions outside of the {examples} training examples")
    given = np.zeros(examples, dtype=np.bool_)
    given[assignment.positions] = True
    if given.sum() < len(assignment.positions):
        raise ConfigError(f"partition {kind} gives an example to two clients")
    return assignment


class DrawnPartition(Partition):
    """Divides the examples at random, whosever they were."""

    clients: int = Field(ge=1, le=1_000_000, description="Number of clients.")

    def assign(
        self,
        labels: Tensor | Indices,
        classes: int,
        key: Key,
        owners: Owners | None = None,
    ) -> Assignment:
        known = np.asarray(labels, dtype=np.int64)
        if self.clients > len(known):
            raise ConfigError(
                f"partition.clients = {self.clients} is more than the {len(known)} training examples; use fewer clients"
            )
        return Assignment.of(self.draw(known, classes, key.numpy())).sorted()

    @abstractmethod
    def draw(self, labels: Indices, classes: int, random: np.random.Generator) -> Sequence[Indices]:
        """The positions of each client in any order."""


def shuffled_classes(labels: Indices, classes: int, random: np.random.Generator) -> list[Indices]:
    """The positions of each class, in random order."""
    return [random.permutation(np.flatnonzero(labels == label)) for label in range(classes)]


def deal(pools: Sequence[Indices], counts: Counts) -> Assignment:
    """Client k takes the next ``counts[c, k]`` positions of class c; the result is in the order of the classes."""
    dealt = np.concatenate([pool[: row.sum()] for pool, row in zip(pools, counts, strict=True)])
    clients = np.concatenate([np.repeat(np.arange(len(row)), row) for row in counts])
    return Assignment(dealt[np.argsort(clients, kind="stable")], np.cumsum(counts.sum(axis=0)))


def counts_from_shares(shares: NDArray[np.float64], total: int) -> Counts:
    """Whole numbers that add up to ``total``, by rounding down the cumulated shares."""
    ends = np.minimum((np.cumsum(shares) * total).astype(np.int64), total)
    ends[-1] = total
    ends[1:] -= ends[:-1].copy()
    return ends


def check_minimum(minimum: int, clients: int, examples: int) -> None:
    if minimum * clients > examples:
        raise ConfigError(
            f"partition.min_examples = {minimum} for {clients} clients needs {minimum * clients} examples, "
            f"but there are {examples}; lower min_examples or clients"
        )


def redraw(draw: Callable[[], Counts | None], alpha: float, clients: int, wish: str) -> Counts:
    """The first draw that is not None; after too many, a sentence that says what could not be had."""
    for _ in range(TRIES):
        counts = draw()
        if counts is not None:
            return counts
    raise ConfigError(
        f"partition.alpha = {alpha:g} with {clients} clients: in {TRIES} draws there was none with {wish}; "
        "raise alpha, or use fewer clients"
    )


def enough_for_all(counts: Counts, minimum: int) -> bool:
    """Whether every client (last axis) has at least ``minimum`` examples."""
    return bool(counts.reshape(-1, counts.shape[-1]).sum(axis=0).min() >= minimum)
