"""Weights that are means of other weights, and are computed where somebody looks at them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fedfuse.core.weights import DistantWeights, Weights
from fedfuse.parts.robust import AT_ONCE


class Mixer:
    """Rows of ``shares`` say what each mixture has of each of the weights."""

    def __init__(self, weights: Sequence[Weights], shares: Tensor) -> None:
        self.weights, self.shares = weights, shares
        self._piece: tuple[int, int, Tensor] | None = None

    def mixtures(self) -> list[Weights]:
        return [Mixture(self, place) for place in range(len(self.shares))]

    def between(self, place: int, begin: int, end: int) -> Tensor:
        """Some numbers of one mixture; neighbours ask for the same piece, which is made for all of them at once."""
        if len(self.shares) * (end - begin) > AT_ONCE:
            return self._of(self.shares[place : place + 1], begin, end)[0]
        if self._piece is None or self._piece[:2] != (begin, end):
            self._piece = (begin, end, self._of(self.shares, begin, end))
        return self._piece[2][place]

    def _of(self, shares: Tensor, begin: int, end: int) -> Tensor:
        total = torch.zeros(len(shares), end - begin, dtype=torch.float64)
        for one, column in zip(self.weights, shares.T, strict=True):
            if bool(column.any()):
                total.addr_(column, one.between(begin, end).double())
        return total.to(self.weights[0].between(0, 1).dtype)


class Mixture(DistantWeights):
    """One of a mixer's means."""

    def __init__(self, mixer: Mixer, place: int) -> None:
        first = mixer.weights[0]
        super().__init__(first.between(0, 1).dtype, first.layout)
        self._mixer, self._place = mixer, place

    def read(self) -> Tensor:
        pieces = range(0, self.layout.size, AT_ONCE)
        return torch.cat([self.between(begin, min(begin + AT_ONCE, self.layout.size)) for begin in pieces])

    def between(self, begin: int, end: int) -> Tensor:
        return self._mixer.between(self._place, begin, end)
