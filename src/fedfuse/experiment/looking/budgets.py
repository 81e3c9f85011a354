"""What each row had reached when so much was spent, and which is ahead; the last round measured by then counts."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fedfuse.core.views import Spent
from fedfuse.experiment.looking.curves import Measured, check_spent, seeds_of
from fedfuse.experiment.looking.grouping import Line
from fedfuse.report.intervals import Interval

ROUND = (1.0, 2.0, 5.0)
"""First digits of round numbers."""
MOST = 5
"""Budgets that are shown without being asked for."""


@dataclass(frozen=True)
class Reached:
    """A row within a budget, over all its seeds; ``rounds`` are those in which they were measured last."""

    interval: Interval
    rounds: tuple[int, ...]

    @property
    def ends(self) -> dict[str, float | None]:
        """Of the interval, by name."""
        return {"low": self.interval.low, "high": self.interval.high}


def reached(seeds: Sequence[Measured], budget: float) -> Reached | None:
    """None if some seed had not been measured by then."""
    places = [bisect.bisect_right(one.spent, budget) - 1 for one in seeds]
    if not seeds or min(places) < 0:
        return None
    values = [one.values[place] for one, place in zip(seeds, places, strict=True)]
    return Reached(Interval.of(values), tuple(one.rounds[place] for one, place in zip(seeds, places, strict=True)))


def standings(lines: Sequence[Line], over: Spent, budget: float) -> list[Reached | None]:
    """Of each line, where it stood when so much was spent."""
    check_spent(over)
    return [reached(seeds_of(line, over), budget) for line in lines]


def best_of(stood: Sequence[Reached | None]) -> int | None:
    """The place of the highest mean; None if nobody had been measured."""
    there = [place for place, own in enumerate(stood) if own is not None]
    return max(there, key=lambda place: (_mean(stood[place]), -place), default=None)


def _mean(own: Reached | None) -> float:
    return -math.inf if own is None else own.interval.mean


def round_budgets(lines: Sequence[Line], over: Spent) -> list[float]:
    """A few round numbers between where the first can be seen and where the last is at its end."""
    curves = [one for line in lines for one in seeds_of(line, over) if one.spent]
    if not curves:
        return []
    first, last = min(one.spent[0] for one in curves), max(one.spent[-1] for one in curves)
    inside = [number for number in _round_numbers(first, last) if first <= number <= last]
    return _spaced(inside) or [last]


def _round_numbers(low: float, high: float) -> Iterator[float]:
    if low <= 0 or high < low:
        return
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        yield from (digit * 10.0**power for digit in ROUND)


def _spaced(numbers: Sequence[float]) -> list[float]:
    """The largest ones: who has little to spend sees little difference."""
    return list(numbers[-MOST:])
