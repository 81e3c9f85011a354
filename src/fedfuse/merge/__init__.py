"""Weights to weights, per prototype; and what becomes of BatchNorm statistics."""

from typing import Annotated

from pydantic import Field

from fedfuse.merge.base import Merge, Merged
from fedfuse.merge.batch_norm import BatchNormPolicy, settle
from fedfuse.merge.mean import Mean
from fedfuse.merge.momentum import Momentum

AnyMerge = Annotated[Mean | Momentum, Field(discriminator="kind")]

__all__ = ["AnyMerge", "BatchNormPolicy", "Mean", "Merge", "Merged", "Momentum", "settle"]
