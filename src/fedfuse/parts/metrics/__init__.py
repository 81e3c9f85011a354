"""Metrics: predictions on the test split and their true labels into numbers.

scikit-learn takes over a second to import; so the metrics that use it do so when they compute.
"""

from fedfuse.parts.metrics.accuracy import Accuracy
from fedfuse.parts.metrics.auroc import Auroc
from fedfuse.parts.metrics.balanced_accuracy import BalancedAccuracy
from fedfuse.parts.metrics.base import Better, Computed, Metric, Predictions, Unit
from fedfuse.parts.metrics.calibration_error import CalibrationError
from fedfuse.parts.metrics.choice import AnyMetric
from fedfuse.parts.metrics.loss import Loss
from fedfuse.parts.metrics.macro_f1 import MacroF1
from fedfuse.parts.metrics.per_class_accuracy import PerClassAccuracy

__all__ = [
    "Accuracy",
    "AnyMetric",
    "Auroc",
    "BalancedAccuracy",
    "Better",
    "CalibrationError",
    "Computed",
    "Loss",
    "MacroF1",
    "Metric",
    "PerClassAccuracy",
    "Predictions",
    "Unit",
]
