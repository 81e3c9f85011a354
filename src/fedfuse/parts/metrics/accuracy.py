"""Top-1 accuracy: the share of examples whose most probable class is the true one."""

from __future__ import annotations

from typing import ClassVar, Literal

from fedfuse.parts.metrics.base import Metric, Predictions, Unit


class Accuracy(Metric):
    """The share of right answers."""

    kind: Literal["accuracy"] = "accuracy"
    unit: ClassVar[Unit] = "percent"

    def compute(self, predictions: Predictions) -> float:
        return float((predictions.predicted == predictions.labels).mean())
