"""What travels: full weights, packed weights, predictions in their place, or nothing."""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.exchange.base import Answer, Exchange, Party, Trained
from fedfuse.exchange.digest import Digest
from fedfuse.exchange.half import HalfPrecision
from fedfuse.exchange.kept import NoExchange
from fedfuse.exchange.layers import LayerByLayer
from fedfuse.exchange.one_bit import OneBitUpload
from fedfuse.exchange.predictions import Predictions
from fedfuse.exchange.weighting import ByAgreement, ByCertainty, ByExamples, ByLabels, ByReconstruction, Uniform
from fedfuse.exchange.weights import FullWeights, Pooled, ScoredWeights

AnyExchange = Annotated[
    Exchange,
    OneOf(FullWeights, HalfPrecision, OneBitUpload, ScoredWeights, Pooled, LayerByLayer, Predictions, NoExchange),
]

__all__ = [
    "Answer",
    "AnyExchange",
    "ByAgreement",
    "ByCertainty",
    "ByExamples",
    "ByLabels",
    "ByReconstruction",
    "Digest",
    "Exchange",
    "FullWeights",
    "HalfPrecision",
    "LayerByLayer",
    "NoExchange",
    "OneBitUpload",
    "Party",
    "Pooled",
    "Predictions",
    "ScoredWeights",
    "Trained",
    "Uniform",
]
