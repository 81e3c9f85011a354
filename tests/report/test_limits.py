"""Round numbers on an axis."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedfuse.report.limits import round_ticks


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 12), st.booleans())
def test_ticks_are_inside_equally_far_apart_and_few(low: float, span: float, most: int, whole: bool) -> None:
    high = low + span
    ticks = round_ticks(low, high, most, whole)
    assert len(ticks) <= most + 1
    assert all(low - 1e-6 * span <= tick <= high + 1e-6 * span for tick in ticks)
    steps = [other - one for one, other in pairwise(ticks)]
    rounding = 2 * math.ulp(max(abs(low), abs(high)))  # of a difference of two ticks far from zero
    assert steps == pytest.approx([steps[0]] * len(steps), abs=2 * rounding) if steps else True
    if whole:
        assert all(float(tick).is_integer() for tick in ticks)


def test_a_single_value_is_its_own_tick() -> None:
    assert round_ticks(7, 7) == [7]
