"""Nearest-neighbour mixing (Allouah et al., Fixing by Mixing, AISTATS 2023), in front of another merge.

    y_k = mean of the n - f models that are nearest to x_k, itself included;    then merge y_1 .. y_n

Honest clients that differ much become alike, which is what robust merges need; it makes any of them as good as one can
be with different data. It needs n >= 2 f + 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.choice import OneOf
from fedfuse.core.messages import Update
from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ServerView
from fedfuse.parts.merge.base import Merge
from fedfuse.parts.merge.bulyan import Bulyan
from fedfuse.parts.merge.centred_clipping import CentredClipping
from fedfuse.parts.merge.geometric_median import GeometricMedian
from fedfuse.parts.merge.mean import Mean
from fedfuse.parts.merge.median import Median
from fedfuse.parts.merge.mixing import MixingMerge
from fedfuse.parts.merge.momentum import Momentum
from fedfuse.parts.merge.trimmed_mean import TrimmedMean, needed
from fedfuse.parts.robust import HOSTILE, Hostile, borne, check_enough, check_pairs, squared_distances

AnyOfWeights = Annotated[Merge, OneOf(TrimmedMean, Median, GeometricMedian, CentredClipping, Bulyan, Mean, Momentum)]
"""Merges that may be given mixtures."""


class NearestMixing(MixingMerge):
    """Every model becomes the mean of its nearest neighbours, then another merge joins them."""

    kind: Literal["nearest_mixing"] = "nearest_mixing"
    hostile: Hostile = Field(0.2, description=HOSTILE)
    then: AnyOfWeights = Field(default_factory=TrimmedMean, description="the merge that is given the mixtures")

    def check(self, context: CheckContext) -> None:
        super().check(context)
        check_enough(context, "method.merge nearest_mixing", self.hostile, needed)
        check_pairs(context, "method.merge nearest_mixing")

    def shares(self, view: ServerView, prototype: str, updates: Sequence[Update]) -> Tensor:
        hostile = max(0, borne(view, "merge nearest_mixing", self.hostile, len(updates), needed))
        distances = squared_distances([update.weights for update in updates], view.weights[prototype])
        return nearest(distances, len(updates) - hostile)

    def speaker(self, place: int, row: Tensor) -> int:
        return place


def nearest(distances: Tensor, number: int) -> Tensor:
    """Equal shares of so many that are nearest, in each row."""
    own = distances.clone().fill_diagonal_(-1)  # before all that are just as near
    order = own.argsort(dim=1, stable=True)[:, :number]
    return torch.zeros_like(distances).scatter(1, order, 1 / number)
