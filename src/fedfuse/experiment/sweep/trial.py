"""One setting that a sweep tries, and what came of it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fedfuse.federation import RoundRecord
from fedfuse.federation.judging import Judge

State = Literal["finished", "pruned", "failed"]
Curve = tuple[tuple[int, float], ...]
"""The judged rounds of a run, and their values."""


@dataclass(frozen=True)
class Outcome:
    """What came of a trial: its value, the mean over seeds, and every seed's own curve as far as it was run."""

    state: State
    value: float | None = None
    values: tuple[float, ...] = ()
    """Of every seed."""
    curves: tuple[Curve, ...] = ()
    reason: str = ""
    """Why it failed."""

    @staticmethod
    def of(curves: Sequence[Curve], judge: Judge, best_round: bool) -> Outcome:
        """Of a trial whose runs are finished; ``best_round`` is what counts, if not the last."""
        values = tuple(_value(curve, judge, best_round) for curve in curves)
        if any(math.isnan(value) for value in values):
            return Outcome("failed", None, (), tuple(curves), f"it has no {judge.by} on {judge.on} examples")
        return Outcome("finished", statistics.fmean(values), values, tuple(curves))

    @property
    def deviation(self) -> float | None:
        """Over seeds; one has none."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def steps(self) -> Iterable[tuple[int, float]]:
        """All judged rounds, one seed's after another's."""
        before = 0
        for curve in self.curves:
            yield from ((before + number, value) for number, value in curve)
            before += curve[-1][0] if curve else 0

    @property
    def rounds(self) -> int:
        """That were judged last, over all seeds."""
        return sum(curve[-1][0] for curve in self.curves if curve)

    @property
    def in_words(self) -> str:
        """For a line."""
        if self.state == "finished":
            return f"{self.value:.4g}"
        return f"stopped after {self.rounds} rounds" if self.state == "pruned" else f"failed: {self.reason}"

    def to_json(self) -> dict[str, Any]:
        curves = [[list(point) for point in curve] for curve in self.curves]
        told = {"value": self.value, "values": list(self.values), "reason": self.reason}
        return {"state": self.state, **{key: value for key, value in told.items() if value}, "curves": curves}

    @staticmethod
    def from_json(said: Mapping[str, Any]) -> Outcome:
        """Raises ValueError, TypeError or KeyError if it is none."""
        if said["state"] not in ("finished", "pruned", "failed"):
            raise ValueError("no such state")
        curves = tuple(tuple((int(n), float(value)) for n, value in curve) for curve in said["curves"])
        value, values = said.get("value"), tuple(map(float, said.get("values", ())))
        if said["state"] == "finished" and not values:
            raise ValueError("a finished trial has a value")
        return Outcome(
            said["state"], float(value or 0.0) if values else None, values, curves, str(said.get("reason", ""))
        )


def curve_of(history: Iterable[RoundRecord], judge: Judge) -> Curve:
    """The rounds that were judged."""
    judged = ((record.round, judge.value(record)) for record in history)
    return tuple((number, value) for number, value in judged if value is not None)


def best_of(curve: Curve, judge: Judge) -> float:
    """Of all rounds; not a number if there is none."""
    values = [value for _, value in curve]
    return (max if judge.higher_is_better else min)(values, default=math.nan)


def _value(curve: Curve, judge: Judge, best_round: bool) -> float:
    if best_round or not curve:
        return best_of(curve, judge)
    return curve[-1][1]
