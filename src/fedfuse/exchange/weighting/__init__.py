"""How much each client's predictions count: w0, w1 and w2 of FedED, FedAUX's certainty, Cronus' robust mean."""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.exchange.weighting.agreement import ByAgreement
from fedfuse.exchange.weighting.base import Weighting
from fedfuse.exchange.weighting.certainty import ByCertainty
from fedfuse.exchange.weighting.examples import ByExamples, Uniform
from fedfuse.exchange.weighting.labels import ByLabels
from fedfuse.exchange.weighting.reconstruction import ByReconstruction

AnyTestimony = Annotated[Weighting, OneOf(ByExamples, Uniform, ByLabels, ByReconstruction, ByCertainty)]
"""Weightings that need no predictions."""
AnyWeighting = Annotated[Weighting, OneOf(ByExamples, Uniform, ByLabels, ByReconstruction, ByCertainty, ByAgreement)]

__all__ = [
    "AnyTestimony",
    "AnyWeighting",
    "ByAgreement",
    "ByCertainty",
    "ByExamples",
    "ByLabels",
    "ByReconstruction",
    "Uniform",
    "Weighting",
]
