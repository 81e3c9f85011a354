"""Weights to weights, per prototype; and what becomes of BatchNorm statistics."""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.parts.merge.base import Merge, Merged
from fedfuse.parts.merge.batch_norm import BatchNormPolicy, settle
from fedfuse.parts.merge.matched import Matched
from fedfuse.parts.merge.mean import Mean
from fedfuse.parts.merge.momentum import Momentum

AnyMerge = Annotated[Merge, OneOf(Mean, Momentum, Matched)]

__all__ = ["AnyMerge", "BatchNormPolicy", "Matched", "Mean", "Merge", "Merged", "Momentum", "settle"]
