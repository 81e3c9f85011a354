"""Tukey's fences (Exploratory Data Analysis, 1977): how far a value may lie from those of the others.

    upper   Q3 exp(max(log slack, 1.5 (log Q3 - log Q1)))      for sizes, on a log scale
    lower   Q1 - 1.5 max(Q3 - Q1, least spread)                for numbers that may be negative

Quartiles are those of all values but the one that is judged, so that nobody moves its own fence. Where the others
differ much the fence is far away, where they are alike it is near, and up to a quarter of them may lie together without
moving it. Of fewer than four others quartiles say little: a size may then be ten times the others'.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

RANGES = 1.5
"""Interquartile ranges between a quartile and its fence, as Tukey's."""
SLACK, SLACK_OF_FEW = 2.0, 10.0
"""How many times the upper quartile a size may be, however alike the others are; where they are few, the second."""
FEW = 4
"""Others of whom quartiles say something, at least."""
WIDEST = 100.0
"""No fence is farther than so many times the upper quartile, however the others differ."""


def upper_fences(sizes: Sequence[float]) -> list[float]:
    """For each size, the largest that it may be beside the others; infinite where there is nobody to compare with.

    Others that are zero say nothing about how large one is. Nine clients are alike, and the last one is not:

    >>> from fedfuse.core.fences import upper_fences
    >>> [round(fence) for fence in upper_fences([100.0] * 9 + [1e9])][-1]
    200
    """
    values = np.asarray(sizes, dtype=np.float64)
    known = values > 0
    fences = np.full(len(values), math.inf)
    logs = np.log(values[known])
    if len(logs) > 1:
        fences[known] = _above(_quartiles_of_others(logs), len(logs) - 1)
    if len(logs) and not known.all():
        fences[~known] = _above(np.quantile(logs, (0.25, 0.75)), len(logs))
    return [float(fence) for fence in fences]


def within_fences(sizes: Sequence[float]) -> list[float]:
    """What each size is to be multiplied by: 1, or less if it is beyond its fence."""
    return [1.0 if size <= fence else fence / size for size, fence in zip(sizes, upper_fences(sizes), strict=True)]


def lower_fences(values: Sequence[float], least_spread: float) -> tuple[list[float], list[float]]:
    """For each value its lower fence, and the lower quartile of the others; of at least two values."""
    first, third = _quartiles_of_others(np.asarray(values, dtype=np.float64))
    fences = first - RANGES * np.maximum(third - first, least_spread)
    return [float(fence) for fence in fences], [float(quartile) for quartile in first]


def _above(quartiles: NDArray[np.float64], others: int) -> NDArray[np.float64]:
    first, third = quartiles
    slack = SLACK if others >= FEW else SLACK_OF_FEW
    beyond = np.clip(RANGES * (third - first), math.log(slack), math.log(WIDEST))
    return np.asarray(np.exp(third + beyond))


def _quartiles_of_others(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Q1 and Q3 of all values but each one's own, all from one sorted row: there may be many."""
    order = values.argsort(kind="stable")
    ordered, ranks = values[order], np.empty(len(values), dtype=np.int64)
    ranks[order] = np.arange(len(values))
    return np.stack([_quantile_without(ordered, ranks, share) for share in (0.25, 0.75)])


def _quantile_without(ordered: NDArray[np.float64], ranks: NDArray[np.int64], share: float) -> NDArray[np.float64]:
    """Between neighbours in a straight line, as numpy's."""
    last = len(ordered) - 2
    place = share * last
    below = math.floor(place)
    above = min(below + 1, last)
    low, high = (ordered[at + (at >= ranks)] for at in (below, above))
    return np.asarray(low + (high - low) * (place - below))
