"""Expected calibration error (Guo et al., 2017): how far confidence is from accuracy.

The largest probability of each example falls into one of M equal bins of (0, 1], and

    ECE = sum_m |B_m| / N * |accuracy(B_m) - mean confidence(B_m)|
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from fedfuse.parts.metrics.base import Better, Metric, Predictions, Unit


class CalibrationError(Metric):
    """The mean gap between confidence and accuracy."""

    kind: Literal["calibration_error"] = "calibration_error"
    bins: int = Field(15, ge=1, description="M: equal bins of confidence")

    better: ClassVar[Better] = "lower"
    unit: ClassVar[Unit] = "percent"

    def compute(self, predictions: Predictions) -> float:
        confidence = predictions.probabilities.max(axis=1)
        inner_edges = np.linspace(0, 1, self.bins + 1)[1:-1]
        gaps = (predictions.predicted == predictions.labels) - confidence
        by_bin = np.bincount(np.digitize(confidence, inner_edges, right=True), weights=gaps)
        return float(np.abs(by_bin).sum() / len(confidence))
