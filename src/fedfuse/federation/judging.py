"""Which round was the best so far, and whether it is time to stop waiting for a better one.

All of it follows from the records of the rounds, so that a run that was interrupted decides as one that was not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fedfuse.federation.settings import EvaluationSettings
from fedfuse.federation.state import PrototypeRecord, RoundRecord
from fedfuse.runtime.evaluate import Values

On = Literal["validation", "test"]


@dataclass(frozen=True)
class Judge:
    """What a round is judged by. ``ensemble``: the method's answer is that of its ensemble, and not its models'."""

    by: str
    on: On
    higher_is_better: bool
    ensemble: bool = False

    @staticmethod
    def of(settings: EvaluationSettings, on: On, ensemble: bool) -> Judge:
        return Judge(settings.best_by, on, settings.higher_is_better, ensemble)

    def value(self, record: RoundRecord) -> float | None:
        """A round's: the mean over its models, or the ensemble's; None if any of them was not measured."""
        if self.ensemble:
            return self._of_ensemble(record).get(self.by)
        values = [self._of_model(own).get(self.by) for own in record.prototypes.values()]
        known = [value for value in values if value is not None]
        return math.fsum(known) / len(known) if known and len(known) == len(values) else None

    def gain(self, value: float, over: float | None) -> float:
        """By how much a value is better than another; than none, infinitely."""
        if over is None:
            return math.inf
        return value - over if self.higher_is_better else over - value

    def _of_model(self, record: PrototypeRecord) -> Values:
        if self.on == "validation":
            return record.validation
        return {"accuracy": record.accuracy, "loss": record.loss, **record.metrics}

    def _of_ensemble(self, record: RoundRecord) -> Mapping[str, float | None]:
        if self.on == "validation":
            return record.ensemble_validation
        return {"accuracy": record.ensemble_accuracy, **record.ensemble_metrics}


class Watch:
    """Looks at one round after another."""

    def __init__(self, judge: Judge, patience: int | None = None, least_gain: float = 0.0) -> None:
        self.judge, self.patience, self.least_gain = judge, patience, least_gain
        self.best: list[tuple[int, float]] = []
        """Every round that was better than all before it, with its value; the first of equals counts."""
        self.is_out_of_patience = False
        self._waits_since = 0
        self._to_beat: float | None = None

    def add(self, record: RoundRecord) -> None:
        """The next round."""
        value, judge = self.judge.value(record), self.judge
        if value is not None and judge.gain(value, self.best[-1][1] if self.best else None) > 0:
            self.best.append((record.round, value))
        if value is not None and judge.gain(value, self._to_beat) > self.least_gain:
            self._to_beat, self._waits_since = value, record.round
        is_long = self.patience is not None and record.round - self._waits_since >= self.patience
        is_measured = any(own.accuracy is not None for own in record.prototypes.values())
        self.is_out_of_patience = is_long and is_measured

    def best_until(self, number: int) -> int | None:
        """The best round up to this one; None if none was judged."""
        return next((one for one, _ in reversed(self.best) if one <= number), None)
