"""The metrics that an experiment names: computed from the same logits, and none of them ever ends a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from torch import Tensor

from fedfuse.core.imports import first_line
from fedfuse.federation.events import EventLog
from fedfuse.parts.metrics import Metric, Predictions
from fedfuse.parts.metrics.base import read_only


class Metrics:
    """Logits and labels into numbers by name. A metric that fails has no value, and the log says once why."""

    def __init__(self, metrics: Sequence[Metric], class_names: tuple[str, ...], log: EventLog) -> None:
        self.metrics = metrics
        self.class_names = class_names
        self.log = log
        self.told: set[str] = set()

    def __call__(self, logits: Tensor, labels: Tensor) -> dict[str, float | None]:
        predictions = Predictions(read_only(logits.double().numpy()), read_only(labels.numpy()), self.class_names)
        return {name: value for metric in self.metrics for name, value in self._values(metric, predictions).items()}

    def _values(self, metric: Metric, predictions: Predictions) -> dict[str, float | None]:
        try:
            return named(metric.called, metric.compute(predictions))
        except Exception as error:  # somebody else's code may raise anything
            self._tell(metric.called, first_line(error))
            return {metric.called: None}

    def _tell(self, metric: str, reason: str) -> None:
        if metric not in self.told:
            self.told.add(metric)
            self.log.emit("metric_failed", metric=metric, reason=reason)


def named(name: str, computed: Any) -> dict[str, float | None]:
    """A metric's one value under its name, or each of several under ``name.key``."""
    if isinstance(computed, Mapping):
        return {f"{name}.{key}": _number(value) for key, value in computed.items()}
    return {name: _number(computed)}


def _number(value: Any) -> float | None:
    if value is None:
        return None
    if not isinstance(value, Real):
        raise TypeError(f"compute gave {type(value).__name__}, but should give a number, a mapping of numbers or None")
    if not math.isfinite(value):
        raise ValueError(f"compute gave {float(value)}, which is not finite; give None where it is not defined")
    return float(value)
