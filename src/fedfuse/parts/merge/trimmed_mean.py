"""The coordinate-wise trimmed mean (Yin et al., Byzantine-Robust Distributed Learning, ICML 2018).

    x^j = mean of x_1^j .. x_n^j without the f smallest and the f largest

While at most f clients are hostile, every number lies between two honest ones; it needs n >= 2 f + 1. With f = 0 it is
the plain mean. Clients count the same, however many examples they have.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import Tensor

from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ServerView
from fedfuse.parts.merge.robust import CoordinateMerge
from fedfuse.parts.robust import HOSTILE, Hostile, borne, check_enough


def needed(hostile: int) -> int:
    """Clients that a trimmed mean needs for so many hostile ones."""
    return 2 * hostile + 1


class TrimmedMean(CoordinateMerge):
    """The mean of every parameter without its extremes."""

    kind: Literal["trimmed_mean"] = "trimmed_mean"
    hostile: Hostile = Field(0.2, description=f"{HOSTILE}; as many are left out at both ends")

    def check(self, context: CheckContext) -> None:
        check_enough(context, "method.merge trimmed_mean", self.hostile, needed)

    def bears(self, view: ServerView, clients: int) -> int:
        return borne(view, "merge trimmed_mean", self.hostile, clients, needed)

    def piece(self, values: Tensor, hostile: int) -> Tensor:
        return trimmed(values, hostile)


def trimmed(values: Tensor, hostile: int) -> Tensor:
    """The mean of each column without as many numbers at both ends."""
    mean: Tensor = values.sort(dim=0).values[hostile : len(values) - hostile].mean(dim=0)
    return mean
