"""Results in the order of what they were asked for, whatever order they come in."""

from __future__ import annotations

from itertools import permutations

import pytest

from fedfuse.runtime.pool import IN_PROCESS, in_order


@pytest.mark.parametrize("order", list(permutations(range(4))), ids=str)
def test_in_order(order):
    assert list(in_order((place, place * 10) for place in order)) == [0, 10, 20, 30]


def test_nothing_is_kept_longer_than_needed():
    """What comes in order is handed on before the next one is asked for."""
    asked = []

    def results():
        for place in range(3):
            asked.append(place)
            yield place, place

    results_in_order = in_order(results())
    assert next(results_in_order) == 0
    assert asked == [0]


def test_own_hands_work_here_one_after_another():
    assert list(IN_PROCESS.map("number", lambda x: x * 2, [3, 1])) == [(0, 6), (1, 2)]
    told = []
    assert IN_PROCESS.run("work", lambda progress: progress("steps", 1, 2), lambda *tick: told.append(tick)) is None
    assert told == [("steps", 1, 2)]
