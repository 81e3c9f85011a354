"""Cross-entropy: the mean of -log p(true class)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from fedfuse.parts.metrics.base import Better, Metric, Predictions


class Loss(Metric):
    """Mean cross-entropy, in nats."""

    kind: Literal["loss"] = "loss"
    better: ClassVar[Better] = "lower"

    def compute(self, predictions: Predictions) -> float:
        of_the_true = np.take_along_axis(predictions.log_probabilities, predictions.labels[:, None], axis=1)
        return float(-of_the_true.mean())
