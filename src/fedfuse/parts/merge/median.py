"""The coordinate-wise median (Yin et al., Byzantine-Robust Distributed Learning, ICML 2018).

    x^j = median of x_1^j .. x_n^j

While fewer than half of the clients are hostile, every number lies between two honest ones. Clients count the same,
however many examples they have.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from fedfuse.parts.context import ServerView
from fedfuse.parts.merge.robust import CoordinateMerge, medians


class Median(CoordinateMerge):
    """The median of every parameter."""

    kind: Literal["median"] = "median"

    def bears(self, view: ServerView, clients: int) -> int:
        return (clients - 1) // 2

    def piece(self, values: Tensor, hostile: int) -> Tensor:
        return medians(values)
