"""Per-class accuracy: of each class' examples, the share that is right. Not defined for a class without examples."""

from __future__ import annotations

from typing import ClassVar, Literal

from fedfuse.parts.metrics.base import Metric, Predictions, Unit


class PerClassAccuracy(Metric):
    """The accuracy on each class' own examples, by the name of the class."""

    kind: Literal["per_class_accuracy"] = "per_class_accuracy"
    unit: ClassVar[Unit] = "percent"

    def compute(self, predictions: Predictions) -> dict[str, float | None]:
        from sklearn.metrics import recall_score

        every, missing = range(predictions.classes), predictions.missing_classes
        shares = recall_score(
            predictions.labels, predictions.predicted, labels=every, average=None, zero_division=0.0
        ).tolist()
        names = enumerate(predictions.class_names)
        return {name: None if number in missing else shares[number] for number, name in names}
