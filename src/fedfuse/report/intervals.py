"""Numbers over seeds: their mean with a 95 % interval, paired differences, and what many of them at once allow to say.

Seeds are taken for a sample of all seeds, and their numbers for normally distributed. A mean has Student's interval,

    mean(x) +- t_{0.975, n-1} std(x) / sqrt(n)

and so is that of a difference d_s = x_s - y_s, which is taken seed by seed: runs with the same seed share data,
partition, initial weights and sampled clients. Whoever makes many comparisons finds some difference by chance; Holm's
correction keeps the probability of a single such find below 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TypeVar

from scipy.special import stdtr, stdtrit  # scipy.stats takes most of a second to import

CONFIDENCE = 0.95
Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % interval; without ends from fewer than two seeds."""

    mean: float
    low: float | None
    high: float | None
    seeds: int

    @staticmethod
    def of(values: Sequence[float]) -> Interval:
        mean, seeds = fmean(values), len(values)
        if seeds < 2:
            return Interval(mean, None, None, seeds)
        reach = t_quantile(seeds) * stdev(values) / math.sqrt(seeds)
        return Interval(mean, mean - reach, mean + reach, seeds)

    @property
    def reach(self) -> float | None:
        """How far it extends to both sides."""
        return None if self.high is None else self.high - self.mean


def t_quantile(seeds: int) -> float:
    """By how many standard errors the interval of so many seeds extends to each side."""
    return float(stdtrit(seeds - 1, (1 + CONFIDENCE) / 2))


def p_value(differences: Sequence[float]) -> float | None:
    """Of the paired t-test against no difference; None where all are alike, or there is only one: nothing varies."""
    if len(differences) < 2 or (deviation := stdev(differences)) == 0:
        return None
    statistic = fmean(differences) / (deviation / math.sqrt(len(differences)))
    return 2 * float(stdtr(len(differences) - 1, -abs(statistic)))


def holm(p_values: Mapping[Name, float]) -> dict[Name, float]:
    """Each p-value as it has to be read when all of them were asked for at once."""
    adjusted: dict[Name, float] = {}
    highest = 0.0
    for place, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[name]))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}
