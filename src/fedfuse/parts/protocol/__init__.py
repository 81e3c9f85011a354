"""What travels: full weights, packed weights, predictions in their place, or nothing."""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.parts.protocol.base import Answer, Exchange, Party, Trained
from fedfuse.parts.protocol.client_distillation import ClientDistillation
from fedfuse.parts.protocol.half import HalfPrecision
from fedfuse.parts.protocol.kept import NoExchange
from fedfuse.parts.protocol.layers import LayerByLayer
from fedfuse.parts.protocol.one_bit import OneBitUpload
from fedfuse.parts.protocol.predictions import Predictions
from fedfuse.parts.protocol.weights import FullWeights, Pooled, ScoredWeights
from fedfuse.parts.scores import ByAgreement, ByCertainty, ByExamples, ByLabels, ByReconstruction, Uniform

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
    "ClientDistillation",
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
