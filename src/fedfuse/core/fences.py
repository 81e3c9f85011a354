"""Tukey's fences (Exploratory Data Analysis, 1977): how far a value may lie from those of the others.

    upper   Q3 exp(max(log slack, 1.5 (log Q3 - log Q1)))      for sizes, on a log scale
    lower   Q1 - 1.5 max(Q3 - Q1, least spread)                for numbers that may be negative

A size beyond its fence counts as the fence. One beyond twice its fence is no longer believed at all, and counts as the
others' median: where sizes differ much the fence is so far away that a liar at it would outweigh everybody.

Quartiles are those of all values but the one that is judged, so that nobody moves its own fence. Where the others
differ much the fence is far away, where they are alike it is near, and up to a quarter of them may lie together without
moving it. Of fewer than four others quartiles say little: a size may then be ten times the others'.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64] | np.float64

RANGES = 1.5
"""Interquartile ranges between a quartile and its fence, as Tukey's."""
SLACK, SLACK_OF_FEW = 2.0, 10.0
"""How many times the upper quartile a size may be, however alike the others are; where they are few, the second."""
FEW = 4
"""Others of whom quartiles say something, at least."""
BELIEVED = 2.0
"""Times its fence up to which a size counts as the fence."""
ALIKE = 3.0
"""Times that the upper quartile of sizes may be the lower one, if they are to be called alike."""
CHANCE = 4.0
"""Standard deviations that a count of examples may be above the upper quartile: of few examples chance makes many."""
WIDEST = 100.0
"""No fence is farther than so many times the upper quartile, however the others differ."""


def upper_fences(sizes: Sequence[float]) -> list[float]:
    """For each size, the largest that it may be beside the others; infinite where there is nobody to compare with.

    Others that are zero say nothing about how large one is.
    """
    return [float(fence) for fence in _beside_others(np.asarray(sizes, dtype=np.float64))[0]]


def fences_of_counts(counts: Sequence[float]) -> list[float]:
    """The upper fence of each count of examples beside others that are alike, if they are and not few; else infinite.

    For what honest clients have in very different amounts, if their data differ: examples of one class. Where all have
    few of them, one may have twice as many by chance.
    """
    values = np.asarray(counts, dtype=np.float64)
    found = np.full(len(values), math.inf)
    known = values > 0
    logs = np.log(values[known])
    if len(logs) > FEW:
        first, third = _quantiles_of_others(logs, (0.25, 0.75))
        upper = np.exp(third)
        fences = np.maximum(_above(first, third, len(logs) - 1, SLACK), upper + CHANCE * np.sqrt(upper))
        found[known] = np.where(third - first <= math.log(ALIKE), fences, math.inf)
    return [float(fence) for fence in found]


def counted(sizes: Sequence[float], slack: float = SLACK) -> list[float]:
    """What each size counts as beside the others; ``slack`` is what is allowed however alike they are.

    Nine clients are alike, and the last one says that it has ever more examples than they have:

    >>> from fedfuse.core.fences import counted
    >>> [round(counted([100.0] * 9 + [claim])[-1]) for claim in (200, 300, 400, 1e9)]
    [200, 200, 200, 100]
    """
    values = np.asarray(sizes, dtype=np.float64)
    fences, medians = _beside_others(values, slack)
    bounded = np.where(values <= BELIEVED * fences, np.minimum(values, fences), medians)
    return [float(size) for size in bounded]


def medians_of_others(sizes: Sequence[float]) -> list[float]:
    """For each size, the median of the others that are not zero; infinite where there is nobody to compare with."""
    return [float(middle) for middle in _beside_others(np.asarray(sizes, dtype=np.float64))[1]]


def within_fences(sizes: Sequence[float]) -> list[float]:
    """What each size is to be multiplied by: 1, or less if it is beyond its fence."""
    return [1.0 if own == size else own / size for size, own in zip(sizes, counted(sizes), strict=True)]


def lower_fences(values: Sequence[float], least_spread: float) -> tuple[list[float], list[float]]:
    """For each value its lower fence, and the lower quartile of the others; of at least two values."""
    first, third = _quantiles_of_others(np.asarray(values, dtype=np.float64), (0.25, 0.75))
    fences = first - RANGES * np.maximum(third - first, least_spread)
    return [float(fence) for fence in fences], [float(quartile) for quartile in first]


def _beside_others(
    values: NDArray[np.float64], slack: float = SLACK
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Each size's fence, and the median of the others; both infinite where there is nobody to compare with."""
    known = values > 0
    fences, medians = np.full((2, len(values)), math.inf)
    logs = np.log(values[known])
    if len(logs) > 1:
        first, middle, third = _quantiles_of_others(logs, (0.25, 0.5, 0.75))
        fences[known], medians[known] = _above(first, third, len(logs) - 1, slack), np.exp(middle)
    if len(logs) and not known.all():
        first, middle, third = np.quantile(logs, (0.25, 0.5, 0.75))
        fences[~known], medians[~known] = _above(first, third, len(logs), slack), np.exp(middle)
    return fences, medians


def _above(first: Numbers, third: Numbers, others: int, slack: float) -> NDArray[np.float64]:
    least = slack if others >= FEW else SLACK_OF_FEW
    beyond = np.clip(RANGES * (third - first), math.log(least), math.log(WIDEST))
    return np.asarray(np.exp(third + beyond))


def _quantiles_of_others(values: NDArray[np.float64], shares: Sequence[float]) -> NDArray[np.float64]:
    """Quantiles of all values but each one's own, all from one sorted row: there may be many."""
    order = values.argsort(kind="stable")
    ordered, ranks = values[order], np.empty(len(values), dtype=np.int64)
    ranks[order] = np.arange(len(values))
    return np.stack([_quantile_without(ordered, ranks, share) for share in shares])


def _quantile_without(ordered: NDArray[np.float64], ranks: NDArray[np.int64], share: float) -> NDArray[np.float64]:
    """Between neighbours in a straight line, as numpy's."""
    last = len(ordered) - 2
    place = share * last
    below = math.floor(place)
    above = min(below + 1, last)
    low, high = (ordered[at + (at >= ranks)] for at in (below, above))
    return np.asarray(low + (high - low) * (place - below))
