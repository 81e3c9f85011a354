"""Teacher weighting: how much each teacher of an ensemble counts, everywhere or input by input."""

from typing import Annotated, Any

from pydantic import BeforeValidator

from fedfuse.core.choice import OneOf
from fedfuse.parts.scores.agreement import ByAgreement
from fedfuse.parts.scores.asking import Asking
from fedfuse.parts.scores.base import Coefficient, Said, Scores
from fedfuse.parts.scores.certainty import ByCertainty
from fedfuse.parts.scores.comparing import ByComparison
from fedfuse.parts.scores.confidence import ByConfidence
from fedfuse.parts.scores.entropy import ByEntropy
from fedfuse.parts.scores.examples import ByExamples
from fedfuse.parts.scores.labels import ByLabels
from fedfuse.parts.scores.median import ByMedian
from fedfuse.parts.scores.outputs import ByOutputs
from fedfuse.parts.scores.reconstruction import ByReconstruction
from fedfuse.parts.scores.reliability import ByReliability
from fedfuse.parts.scores.trimmed_mean import ByTrimmedMean
from fedfuse.parts.scores.uniform import Uniform
from fedfuse.parts.scores.validation import ByValidation
from fedfuse.parts.scores.variance import ByVariance


def _by_its_kind(value: Any) -> Any:
    """``scores: entropy`` is short for ``scores: {kind: entropy}``."""
    return {"kind": value} if isinstance(value, str) else value


AnyScores = Annotated[
    Scores,
    OneOf(
        Uniform, ByExamples, ByValidation, ByConfidence, ByEntropy, ByVariance,
        ByLabels, ByReconstruction, ByCertainty, ByAgreement, ByMedian, ByTrimmedMean, ByReliability,
    ),
    BeforeValidator(_by_its_kind),
]  # fmt: skip

__all__ = [
    "AnyScores",
    "Asking",
    "ByAgreement",
    "ByCertainty",
    "ByComparison",
    "ByConfidence",
    "ByEntropy",
    "ByExamples",
    "ByLabels",
    "ByMedian",
    "ByOutputs",
    "ByReconstruction",
    "ByReliability",
    "ByTrimmedMean",
    "ByValidation",
    "ByVariance",
    "Coefficient",
    "Said",
    "Scores",
    "Uniform",
]
