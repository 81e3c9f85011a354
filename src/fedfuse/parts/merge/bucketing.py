"""Bucketing (Karimireddy, He and Jaggi, Byzantine-Robust Learning on Heterogeneous Datasets, ICLR 2022), in front of
another merge.

    a random order of the round's clients, cut into buckets of s;   y_b = mean of bucket b;   then merge y_1 .. y_(n/s)

Buckets differ less than clients do. Of n / s buckets up to f may be hostile now, so that the other merge has to bear s
times the share: buckets of 2 are for fewer than a quarter of hostile clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.choice import OneOf
from fedfuse.core.messages import Update
from fedfuse.parts.context import ServerView
from fedfuse.parts.merge.base import Merge
from fedfuse.parts.merge.bulyan import Bulyan
from fedfuse.parts.merge.centred_clipping import CentredClipping
from fedfuse.parts.merge.geometric_median import GeometricMedian
from fedfuse.parts.merge.mean import Mean
from fedfuse.parts.merge.median import Median
from fedfuse.parts.merge.mixing import MixingMerge
from fedfuse.parts.merge.momentum import Momentum
from fedfuse.parts.merge.nearest_mixing import NearestMixing
from fedfuse.parts.merge.trimmed_mean import TrimmedMean

AnyAfterBuckets = Annotated[
    Merge, OneOf(Median, TrimmedMean, GeometricMedian, CentredClipping, Bulyan, NearestMixing, Mean, Momentum)
]


class Bucketing(MixingMerge):
    """Means of a few clients each, then another merge joins them."""

    kind: Literal["bucketing"] = "bucketing"
    size: int = Field(2, ge=1, description="s: clients in a bucket; 1 leaves them as they are")
    then: AnyAfterBuckets = Field(default_factory=Median, description="the merge that is given the buckets' means")

    def shares(self, view: ServerView, prototype: str, updates: Sequence[Update]) -> Tensor:
        order = torch.randperm(len(updates), generator=view.key.child("buckets").torch())
        rows = torch.zeros(-(-len(updates) // self.size), len(updates), dtype=torch.float64)
        for row, bucket in zip(rows, order.split(self.size), strict=True):
            row[bucket] = 1 / len(bucket)
        return rows

    def speaker(self, place: int, row: Tensor) -> int:
        return int(row.argmax())
