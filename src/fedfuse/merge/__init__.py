"""Weights to weights, per prototype; and what becomes of BatchNorm statistics."""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.merge.base import Merge, Merged
from fedfuse.merge.batch_norm import BatchNormPolicy, settle
from fedfuse.merge.matched import Matched
from fedfuse.merge.mean import Mean
from fedfuse.merge.momentum import Momentum

AnyMerge = Annotated[Merge, OneOf(Mean, Momentum, Matched)]

__all__ = ["AnyMerge", "BatchNormPolicy", "Matched", "Mean", "Merge", "Merged", "Momentum", "settle"]
