"""Intervals and tests over seeds against scipy.stats, and Holm's correction against its definition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedfuse.report.intervals import Interval, holm, p_value, t_quantile

SEVERAL = st.lists(st.floats(-100, 100), min_size=2, max_size=20).filter(lambda values: np.std(values) > 1e-6)


@given(SEVERAL)
def test_the_interval_is_students(values: Sequence[float]) -> None:
    own = Interval.of(values)
    low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
    assert (own.mean, own.low, own.high) == pytest.approx((np.mean(values), low, high), abs=1e-9, rel=1e-9)
    assert own.reach == pytest.approx((high - low) / 2)


@given(SEVERAL)
def test_the_p_value_is_that_of_the_t_test_and_agrees_with_the_interval(differences: Sequence[float]) -> None:
    own, interval = p_value(differences), Interval.of(differences)
    assert own == pytest.approx(stats.ttest_1samp(differences, 0).pvalue, abs=1e-12, rel=1e-9)
    assert interval.low is not None
    assert interval.high is not None
    if abs(own - 0.05) > 1e-9:
        assert (own < 0.05) == (interval.low > 0 or interval.high < 0)


def test_a_paired_test_is_one_of_differences() -> None:
    one, other = [0.81, 0.84, 0.80], [0.79, 0.80, 0.79]
    differences = [a - b for a, b in zip(one, other, strict=True)]
    assert p_value(differences) == pytest.approx(stats.ttest_rel(one, other).pvalue)


def test_one_seed_has_no_interval_and_equal_differences_no_p_value() -> None:
    assert Interval.of([0.5]) == Interval(0.5, None, None, 1)
    assert Interval.of([0.5]).reach is None
    assert Interval.of([0.5, 0.5]) == Interval(0.5, 0.5, 0.5, 2)
    assert p_value([0.5]) is None
    assert p_value([0.5, 0.5, 0.5]) is None


@pytest.mark.parametrize("seeds", [2, 3, 5, 30, 1000])
def test_quantiles_are_scipys(seeds: int) -> None:
    assert t_quantile(seeds) == pytest.approx(stats.t.ppf(0.975, seeds - 1), rel=1e-10)


def test_more_seeds_alike_make_a_narrower_interval() -> None:
    reaches = [Interval.of([0.0, 1.0] * count).reach for count in (1, 2, 4, 8)]
    assert all(a is not None and b is not None and a > b for a, b in itertools.pairwise(reaches))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_what_the_step_down_rejects(values: list[float]) -> None:
    """Holm: go up through the sorted p-values and stop at the first above 0.05 / (those left)."""
    adjusted = holm(dict(enumerate(values)))
    rejected = set()
    for place, name in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        if values[name] > 0.05 / (len(values) - place):
            break
        rejected.add(name)
    near = any(math.isclose(value, 0.05) for value in adjusted.values())
    assert near or {name for name, value in adjusted.items() if value <= 0.05} == rejected
    assert all(raw <= new <= 1 for raw, new in zip(values, adjusted.values(), strict=True))
    assert list(adjusted) == list(range(len(values)))
