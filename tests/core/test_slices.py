"""Ranges cut into batches: everything is in one of them, in order."""

from __future__ import annotations

from itertools import pairwise

import pytest

from fedfuse.core.slices import even_slices, number_of_slices, slices, steady_slices


@pytest.mark.parametrize("cut", [slices, even_slices, steady_slices])
@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 10, 63, 64, 65, 80, 500])
def test_nothing_is_left_out_or_comes_twice(cut, size):
    pieces = cut(size, 8)
    assert pieces[0].start == 0
    assert pieces[-1].stop == size
    assert all(one.stop == other.start for one, other in pairwise(pieces))


def test_a_steady_rest_of_less_than_a_quarter_joins_the_batch_before():
    assert [piece.stop - piece.start for piece in steady_slices(79, 64)] == [79]
    assert [piece.stop - piece.start for piece in steady_slices(80, 64)] == [64, 16]
    assert [piece.stop - piece.start for piece in steady_slices(3, 64)] == [3]
    assert all(s.stop - s.start >= 16 for size in range(16, 400) for s in steady_slices(size, 64))


def test_they_are_counted_without_a_list_of_them():
    for size in range(40):
        for batch_size in (1, 2, 3, 8):
            assert number_of_slices(size, batch_size) == len(slices(size, batch_size))
    assert number_of_slices(10**30 + 1, 10) == 10**29
