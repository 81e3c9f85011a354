"""Trials that are stopped early, because others were better at the same point: the median rule (Golovin et al., 2017).

A run stops after a judged round if the best that it has had so far is worse than the median of what the earlier trials
had had by then. Nobody is stopped before five earlier trials have come that far, nor in the first fifth of rounds.
The decision follows from recorded curves alone: whoever makes it again, after a crash too, comes to the same.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from fedfuse.experiment.sweep.trial import Curve, Outcome, best_of
from fedfuse.federation.judging import Judge

FEWEST_TRIALS = 5
WARM_UP = 0.2
"""Share of the rounds in which nobody is stopped."""


@dataclass(frozen=True)
class Pruning:
    """What a trial is compared with: the trials that it may know of."""

    judge: Judge
    rounds: int
    earlier: Sequence[Outcome]

    def stops(self, place: int, curve: Curve) -> bool:
        """Whether the run of the seed in this place stops after the last round of its curve."""
        if not curve or curve[-1][0] <= max(1, WARM_UP * self.rounds) or curve[-1][0] >= self.rounds:
            return False
        number = curve[-1][0]
        others = [outcome.curves[place] for outcome in self.earlier if len(outcome.curves) > place]
        reached = [_best_until(number, curve, self.judge) for curve in others if curve and curve[-1][0] >= number]
        if len(reached) < FEWEST_TRIALS:
            return False
        return self.judge.gain(best_of(curve, self.judge), statistics.median(reached)) < 0

    def cut(self, place: int, curve: Curve) -> Curve | None:
        """The curve up to the round after which the run stops; None if it does not."""
        for length in range(1, len(curve) + 1):
            if self.stops(place, curve[:length]):
                return curve[:length]
        return None


def _best_until(number: int, curve: Curve, judge: Judge) -> float:
    return best_of(tuple(point for point in curve if point[0] <= number) or curve[:1], judge)
