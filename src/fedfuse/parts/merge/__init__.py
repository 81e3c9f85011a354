"""Aggregation: clients' weights to one set of weights, per prototype; and what becomes of BatchNorm statistics.

An aggregator or server optimizer of other frameworks is a merge here. Robust aggregation is half here and half in
``screen``, which leaves clients out before they are merged (docs/robustness.md).
"""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.parts.merge.aligned import Aligned
from fedfuse.parts.merge.base import Merge, MergeAccumulator, Merged
from fedfuse.parts.merge.batch_norm import BatchNormPolicy, settle
from fedfuse.parts.merge.bucketing import Bucketing
from fedfuse.parts.merge.bulyan import Bulyan
from fedfuse.parts.merge.centred_clipping import CentredClipping
from fedfuse.parts.merge.dare import Dare
from fedfuse.parts.merge.fisher import Fisher
from fedfuse.parts.merge.fltrust import FLTrust
from fedfuse.parts.merge.geometric_median import GeometricMedian
from fedfuse.parts.merge.matched import Matched
from fedfuse.parts.merge.mean import Mean
from fedfuse.parts.merge.median import Median
from fedfuse.parts.merge.momentum import Momentum
from fedfuse.parts.merge.nearest_mixing import NearestMixing
from fedfuse.parts.merge.piecewise import PiecewiseMerge
from fedfuse.parts.merge.regmean import RegMean
from fedfuse.parts.merge.soup import Soup
from fedfuse.parts.merge.task_arithmetic import TaskArithmetic
from fedfuse.parts.merge.ties import Ties
from fedfuse.parts.merge.trained import ModelMerge, TrainedModels
from fedfuse.parts.merge.trimmed_mean import TrimmedMean

AnyMerge = Annotated[
    Merge,
    OneOf(
        Mean, Momentum, Matched, Soup, TaskArithmetic, Ties, Dare, Fisher, RegMean, Aligned,
        Median, TrimmedMean, GeometricMedian, CentredClipping, Bulyan, FLTrust, NearestMixing, Bucketing,
    ),
]  # fmt: skip

__all__ = [
    "Aligned",
    "AnyMerge",
    "BatchNormPolicy",
    "Bucketing",
    "Bulyan",
    "CentredClipping",
    "Dare",
    "FLTrust",
    "Fisher",
    "GeometricMedian",
    "Matched",
    "Mean",
    "Median",
    "Merge",
    "MergeAccumulator",
    "Merged",
    "ModelMerge",
    "Momentum",
    "NearestMixing",
    "PiecewiseMerge",
    "RegMean",
    "Soup",
    "TaskArithmetic",
    "Ties",
    "TrainedModels",
    "TrimmedMean",
    "settle",
]
