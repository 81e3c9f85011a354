"""Aggregation: clients' weights to one set of weights, per prototype; and what becomes of BatchNorm statistics.

An aggregator or server optimizer of other frameworks is a merge here. Robust aggregation is half here and half in
``screen``, which leaves clients out before they are merged.
"""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.parts.merge.base import Merge, MergeAccumulator, Merged
from fedfuse.parts.merge.batch_norm import BatchNormPolicy, settle
from fedfuse.parts.merge.matched import Matched
from fedfuse.parts.merge.mean import Mean
from fedfuse.parts.merge.momentum import Momentum

AnyMerge = Annotated[Merge, OneOf(Mean, Momentum, Matched)]

__all__ = [
    "AnyMerge",
    "BatchNormPolicy",
    "Matched",
    "Mean",
    "Merge",
    "MergeAccumulator",
    "Merged",
    "Momentum",
    "settle",
]
