"""How much each client's predictions count: w0, w1 and w2 of FedED, FedAUX's certainty, Cronus' robust mean."""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.parts.scores.agreement import ByAgreement
from fedfuse.parts.scores.base import Weighting
from fedfuse.parts.scores.certainty import ByCertainty
from fedfuse.parts.scores.examples import ByExamples, Uniform
from fedfuse.parts.scores.labels import ByLabels
from fedfuse.parts.scores.reconstruction import ByReconstruction

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
