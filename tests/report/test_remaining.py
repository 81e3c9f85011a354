"""How long a run will take yet."""

from __future__ import annotations

import pytest

from fedfuse.report.remaining import WINDOW, clock, round_seconds, seconds_left


def test_nothing_is_known_before_the_first_round():
    assert round_seconds([]) is None
    assert seconds_left(None, 5) is None


@pytest.mark.parametrize("each", [0.5, 60.0, 7200.0])
def test_rounds_of_the_same_length(each):
    for rounds in (1, 2, 3, 50):
        assert round_seconds([each] * rounds) == each


def test_a_slow_first_round_is_forgotten_as_soon_as_there_are_two_others():
    assert round_seconds([90.0]) == 90.0
    assert round_seconds([90.0, 10.0, 10.0]) == 10.0


def test_an_evaluation_every_five_rounds_has_its_share_whichever_round_it_is():
    lengths = [14.0 if number % 5 == 0 else 4.0 for number in range(1, 101)]
    for place in range(WINDOW + 1, 101):
        assert round_seconds(lengths[:place]) == 6.0


def test_rounds_that_have_become_longer_are_what_counts():
    assert round_seconds([1.0] * 100 + [9.0] * WINDOW) == 9.0


def test_the_round_under_way_counts_until_it_should_have_ended():
    assert seconds_left(10.0, 3) == 30.0
    assert seconds_left(10.0, 3, under_way=4.0) == 26.0
    assert seconds_left(10.0, 3, under_way=400.0) == 20.0
    assert seconds_left(10.0, 0, under_way=4.0) == 0.0


def test_a_clock():
    assert [clock(seconds) for seconds in (0, 59.6, 3599, 90061)] == ["0:00:00", "0:01:00", "0:59:59", "25:01:01"]
