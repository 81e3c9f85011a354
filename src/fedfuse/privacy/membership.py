"""How well scores tell members from non-members: AUC and true positives at few false ones, with intervals.

    AUC             P(score of a member > score of a non-member) + P(equal) / 2
    TPR at FPR f    the largest share of members above a threshold that at most the share f of non-members reach

Non-members have weights. A party whose data is mostly of class 3 has a model that is sure of class 3; an attack that
only knows this would be credited with finding members, if non-members had other classes than members have. So each
class of non-members weighs what the same class of members does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
DRAWS = 1000
"""Bootstrap samples behind an interval."""
RATES = (0.01, 0.001)
"""Of false positives, at which true ones are told."""
MOST_EXPONENT = 700.0
"""Of what a floating-point number can hold; so much privacy is none."""
MIDDLE = (2.5, 97.5)
"""Percentiles between which 95 % lie."""


@dataclass(frozen=True)
class Interval:
    """A number, and between which two it is with 95 % confidence."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True)
class Measured:
    """How well members were told apart, and the same in every bootstrap sample: columns are AUC, then ``RATES``."""

    value: Numbers
    drawn: Numbers
    members: int
    non_members: int

    @property
    def auc(self) -> Interval:
        return self._interval(0)

    def tpr(self, rate: float) -> Interval | None:
        """None where non-members are too few for a share that small."""
        return self._interval(1 + RATES.index(rate)) if self.non_members * rate >= 1 else None

    def _interval(self, column: int) -> Interval:
        low, high = np.percentile(self.drawn[:, column], MIDDLE)
        return Interval(float(self.value[column]), float(low), float(high))


def measure(
    members: Numbers, others: Numbers, weights: Numbers | None = None, seed: int = 0, draws: int = DRAWS
) -> Measured:
    """Scores of members and of non-members, higher where membership is more likely.

    Bootstrap samples draw both anew. Those of the same non-members are the same with every ``seed``, so that means over
    parties whose non-members are the same know that they are.
    """
    weights = np.ones(len(others)) if weights is None else weights
    _, places = np.unique(np.concatenate([members, others]), return_inverse=True)
    size = int(places.max()) + 1
    inside, outside = places[: len(members)], places[len(members) :]
    of_members, of_others = np.random.default_rng([seed, 1]), np.random.default_rng(0)

    def once(count: Numbers, other: Numbers) -> Numbers:
        return _curve(_heap(inside, count, size), _heap(outside, other * weights, size))

    drawn = [once(_again(len(members), of_members), _again(len(others), of_others)) for _ in range(draws)]
    value = once(np.ones(len(members)), np.ones(len(others)))
    return Measured(value, np.array(drawn), len(members), int((weights > 0).sum()))


def mean(measured: Sequence[Measured]) -> Measured:
    """Over several parties, all of whom count the same."""
    return Measured(
        np.mean([one.value for one in measured], axis=0),
        np.mean([one.drawn for one in measured], axis=0),
        sum(one.members for one in measured),
        min(one.non_members for one in measured),
    )


def class_weights(members: NDArray[np.int64], others: NDArray[np.int64]) -> Numbers:
    """By their labels, what each non-member weighs, so that classes are as frequent there as among members."""
    size = int(max(members.max(initial=0), others.max(initial=0))) + 1
    wanted, there = np.bincount(members, minlength=size), np.bincount(others, minlength=size)
    return np.asarray((wanted / np.maximum(there, 1))[others], np.float64)


def without_outside(scores: Numbers, inside: NDArray[np.bool_], outside: Numbers) -> Numbers:
    """LiRA's score without members' own shadow models (offline): by how much a score is above what it is elsewhere.

    ``outside`` has a row of scores for each shadow model, of which ``inside`` says which examples it was trained on;
    NaN is no score. With few models one standard deviation serves for all examples, and so does not change their order.
    NaN where no model was trained without an example.
    """
    looked = ~inside & ~np.isnan(outside)
    models, total = looked.sum(axis=0), np.where(looked, outside, 0.0).sum(axis=0)
    expected: Numbers = np.divide(total, models, out=np.full(len(scores), np.nan), where=models > 0)
    return scores - expected


def most_that_epsilon_allows(rate: float, epsilon: float, delta: float, of_a_client: bool = False) -> float:
    """The true positives that no attack on one example exceeds, at this rate of false ones (Kairouz et al., 2015).

    An epsilon of a client is between its data and none. Its data with the example and without it are two such steps
    apart: from one to none, and from none to the other.
    """
    if of_a_client:
        rate = most_that_epsilon_allows(rate, epsilon, delta)
    few = math.exp(min(epsilon, MOST_EXPONENT)) * rate + delta
    return min(1.0, few, 1 - math.exp(-epsilon) * max(0.0, 1 - delta - rate))


def _again(size: int, random: np.random.Generator) -> Numbers:
    """How often each is in a sample with replacement."""
    return np.bincount(random.integers(size, size=size), minlength=size).astype(np.float64)


def _heap(places: NDArray[np.int64], counts: Numbers, size: int) -> Numbers:
    """How much there is in each place."""
    return np.bincount(places, counts, size).astype(np.float64)


def _curve(members: Numbers, others: Numbers) -> Numbers:
    """AUC and true positives, from how much there is of each score in ascending order."""
    members, others = members / members.sum(), others / max(others.sum(), 1e-300)
    auc = float((members * (np.cumsum(others) - others / 2)).sum())
    true, false = np.cumsum(members[::-1]), np.cumsum(others[::-1])
    return np.array([auc, *(float(true[false <= rate * (1 + 1e-9)].max(initial=0.0)) for rate in RATES)])
