"""Balanced accuracy: the mean over classes of the share of that class' examples that are right.

Over the classes that some example has.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from fedfuse.parts.metrics.base import Metric, Predictions, Unit


class BalancedAccuracy(Metric):
    """The mean of the classes' accuracies, each class counting the same."""

    kind: Literal["balanced_accuracy"] = "balanced_accuracy"
    unit: ClassVar[Unit] = "percent"

    def compute(self, predictions: Predictions) -> float:
        from sklearn.metrics import recall_score

        there = np.unique(predictions.labels)
        return float(recall_score(predictions.labels, predictions.predicted, labels=there, average="macro"))
