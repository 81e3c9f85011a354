"""Macro-F1: the mean over classes of F1 = 2 TP / (2 TP + FP + FN), each class counting the same.

Over the classes that some example has or that are predicted for one, as scikit-learn does.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from fedfuse.parts.metrics.base import Metric, Predictions, Unit


class MacroF1(Metric):
    """The mean of the classes' F1."""

    kind: Literal["macro_f1"] = "macro_f1"
    unit: ClassVar[Unit] = "percent"

    def compute(self, predictions: Predictions) -> float:
        from sklearn.metrics import f1_score

        return float(f1_score(predictions.labels, predictions.predicted, average="macro", zero_division=0.0))
