"""Tukey's fences against numpy's quartiles, one value at a time, and what they are for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedfuse.core.fences import counted, fences_of_counts, lower_fences, upper_fences, within_fences

SIZES = st.lists(st.floats(1e-3, 1e6), min_size=2, max_size=30)


def by_hand(sizes, place):
    others = np.log([size for at, size in enumerate(sizes) if at != place and size > 0])
    if not len(others):
        return math.inf
    first, third = np.quantile(others, (0.25, 0.75))
    slack = 2 if len(others) >= 4 else 10
    return math.exp(third) * min(max(slack, math.exp(1.5 * (third - first))), 100)


@given(SIZES)
def test_is_tukeys_fence_of_the_others(sizes):
    assert upper_fences(sizes) == pytest.approx([by_hand(sizes, place) for place in range(len(sizes))])


@given(SIZES)
def test_sizes_that_are_not_alike_have_no_fence(sizes):
    fences = upper_fences(sizes)
    for place, fence in enumerate(fences_of_counts(sizes)):
        others = np.delete(sizes, place)
        first, third = np.quantile(np.log(others), (0.25, 0.75))
        if len(others) < 4 or third - first > math.log(3) + 1e-9:
            assert fence == math.inf
        elif third - first < math.log(3) - 1e-9:
            upper = math.exp(third)
            assert fence == pytest.approx(max(fences[place], upper + 4 * math.sqrt(upper)))


def test_of_few_examples_chance_makes_twice_as_many():
    """Honest clients with three examples of a class on average stay as they are; of hundreds, twice as many do not."""
    random = np.random.default_rng(3)
    for _ in range(200):
        counts = random.poisson(3, 20).astype(float)
        assert sum(own > fence for own, fence in zip(counts, fences_of_counts(counts), strict=True)) == 0
    fences = fences_of_counts([100.0] * 9 + [250.0])
    assert fences[-1] == pytest.approx(200)


def test_those_without_any_do_not_say_whether_the_others_are_alike():
    fences = [math.inf, *[10 + 4 * math.sqrt(10)] * 5, math.inf]
    assert fences_of_counts([0.0, *[10.0] * 5, 0.0]) == pytest.approx(fences)
    assert fences_of_counts([0.0, *[10.0] * 4]) == [math.inf] * 5, "three others are few"


@given(SIZES)
def test_zeros_say_nothing_about_the_others(sizes):
    with_zeros = upper_fences([0.0, *sizes, 0.0])
    assert with_zeros[1:-1] == upper_fences(sizes)
    assert with_zeros[0] == pytest.approx(by_hand([0.0, *sizes], 0))


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=20))
def test_lower_fences_are_those_of_the_others(values):
    fences, quartiles = lower_fences(values, 0.1)
    for place, (fence, quartile) in enumerate(zip(fences, quartiles, strict=True)):
        first, third = np.quantile(np.delete(values, place), (0.25, 0.75))
        assert quartile == pytest.approx(first, abs=1e-12)
        assert fence == pytest.approx(first - 1.5 * max(third - first, 0.1), abs=1e-12)


@given(SIZES, st.floats(1, 1e12))
def test_nobody_moves_its_own_fence(sizes, claim):
    assert upper_fences([*sizes, claim])[-1] == upper_fences([*sizes, 1.0])[-1]


@given(st.lists(st.floats(90, 110), min_size=10, max_size=20), st.floats(1, 1e12))
def test_a_quarter_that_lies_together_is_held_by_the_rest(honest, claim):
    liars = len(honest) // 4
    fences = upper_fences([*honest, *([claim] * liars)])
    assert all(fence <= 2 * 111 for fence in fences[len(honest) :])


@given(st.floats(1e-6, 1e6), SIZES)
def test_the_unit_does_not_matter(unit, sizes):
    assert within_fences([unit * size for size in sizes]) == pytest.approx(within_fences(sizes))


def test_alone_or_beside_nothing_there_is_no_fence():
    assert upper_fences([7.0]) == [math.inf]
    assert upper_fences([]) == []
    assert upper_fences([0.0, 0.0, 5.0]) == pytest.approx([50.0, 50.0, math.inf])


def test_skewed_sizes_are_left_alone():
    assert within_fences([473, 70, 71, 170, 56, 6, 112, 9, 32, 7]) == [1.0] * 10


@given(SIZES)
def test_beyond_twice_its_fence_a_size_counts_as_the_others_median(sizes):
    for place, (size, own) in enumerate(zip(sizes, counted(sizes), strict=True)):
        fence, others = by_hand(sizes, place), np.delete(sizes, place)
        believed = min(size, fence) if size <= 2 * fence * (1 - 1e-9) else math.exp(np.median(np.log(others)))
        assert own == pytest.approx(believed) or size == pytest.approx(2 * fence)


@given(SIZES, st.floats(1, 1e12))
def test_whoever_claims_anything_counts_for_no_more_than_its_fence(sizes, claim):
    assert counted([*sizes, claim])[-1] <= upper_fences([*sizes, claim])[-1]


def test_where_sizes_differ_much_a_liar_does_not_outweigh_everybody():
    sizes = [473.0, 70.0, 71.0, 170.0, 56.0, 6.0, 112.0, 9.0, 32.0]
    assert upper_fences([*sizes, 1e9])[-1] > sum(sizes) / 2
    assert counted([*sizes, 1e9])[-1] == pytest.approx(70)
