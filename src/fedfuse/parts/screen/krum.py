"""Krum and Multi-Krum (Blanchard et al., Machine Learning with Adversaries, NeurIPS 2017).

    s(k) = sum over the n - f - 2 clients nearest to k of |x_k - x_j|^2

Krum keeps the client with the smallest score, Multi-Krum the ``keep`` best ones (n - f unless said), of each prototype.
Both need n >= 2 f + 3. Of equal scores the smaller client number wins.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ServerView
from fedfuse.parts.robust import HOSTILE, Hostile, borne, by_prototype, check_enough, check_pairs, squared_distances
from fedfuse.parts.screen.base import Screen, Screened, without


def needed(hostile: int) -> int:
    """Clients that Krum needs for so many hostile ones."""
    return 2 * hostile + 3


def krum_scores(distances: Tensor, hostile: int) -> Tensor:
    """s, from the squared distances between every two of n clients."""
    neighbours = max(1, len(distances) - hostile - 2)
    nearest: Tensor = distances.sort(dim=1).values[:, 1 : 1 + neighbours].sum(dim=1)  # the first is its own, 0
    return nearest


class KrumScreen(Screen):
    """The base of both."""

    compares_weights: ClassVar[bool] = True
    hostile: Hostile = Field(0.2, description=HOSTILE)

    def check(self, context: CheckContext) -> None:
        check_enough(context, f"method.screen {self.kind}", self.hostile, needed)
        check_pairs(context, f"method.screen {self.kind}")

    @abstractmethod
    def kept(self, clients: int, hostile: int) -> int:
        """How many of so many clients are kept."""

    def screen(self, view: ServerView, updates: Screened) -> Screened:
        reasons: dict[int, str] = {}
        for prototype, own in by_prototype(updates.counted).items():
            hostile = borne(view, f"screen {self.kind}", self.hostile, len(own), needed)
            if hostile < 0:
                continue  # of one or two clients nobody can say who is right
            distances = squared_distances([update.weights for update in own], view.weights[prototype])
            order = torch.argsort(krum_scores(distances, hostile), stable=True)
            number = self.kept(len(own), hostile)
            reasons |= {
                own[place].client: f"{self.kind}: {rank} of {len(own)} by its distance to the others, {number} count"
                for rank, place in enumerate(order.tolist(), start=1)
                if rank > number
            }
        return without(updates, reasons)


class Krum(KrumScreen):
    """Of each prototype only the client that is nearest to its neighbours counts."""

    kind: Literal["krum"] = "krum"

    def kept(self, clients: int, hostile: int) -> int:
        return 1


class MultiKrum(KrumScreen):
    """Clients that are far from their nearest neighbours do not count."""

    kind: Literal["multi_krum"] = "multi_krum"
    keep: int | None = Field(None, ge=1, description="m: how many count; unless said n - f")

    def kept(self, clients: int, hostile: int) -> int:
        return max(1, clients - hostile) if self.keep is None else self.keep
