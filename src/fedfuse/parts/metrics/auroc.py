"""AUROC, one class against the rest, macro: the mean over classes of the area under that class' ROC curve.

A class without examples, or that all examples have, has no such curve: then the metric is not defined.
"""

from __future__ import annotations

from statistics import fmean
from typing import Literal

from fedfuse.parts.metrics.base import Metric, Predictions


class Auroc(Metric):
    """How well each class' probability ranks its examples above the others'; 0.5 is chance."""

    kind: Literal["auroc"] = "auroc"

    def compute(self, predictions: Predictions) -> float | None:
        from sklearn.metrics import roc_auc_score

        if predictions.missing_classes:
            return None
        columns = enumerate(predictions.probabilities.T)
        return fmean(float(roc_auc_score(predictions.labels == number, column)) for number, column in columns)
