"""What travels: full weights, or predictions in their place."""

from typing import Annotated

from pydantic import Field

from fedfuse.exchange.base import Answer, Exchange, Trained
from fedfuse.exchange.half import HalfPrecision
from fedfuse.exchange.one_bit import OneBitUpload
from fedfuse.exchange.predictions import Predictions
from fedfuse.exchange.weighting import ByExamples, ByLabels, ByReconstruction
from fedfuse.exchange.weights import FullWeights

AnyExchange = Annotated[FullWeights | HalfPrecision | OneBitUpload | Predictions, Field(discriminator="kind")]

__all__ = [
    "Answer",
    "AnyExchange",
    "ByExamples",
    "ByLabels",
    "ByReconstruction",
    "Exchange",
    "FullWeights",
    "HalfPrecision",
    "OneBitUpload",
    "Predictions",
    "Trained",
]
