"""Curves of signs: where they begin and end, how high they are, and how much room they take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedfuse.report.terminal import ASCII_BARS, BARS, chart, sparkline

CURVE = st.lists(st.floats(0, 1), min_size=1, max_size=300)


@given(CURVE, st.integers(20, 120), st.integers(2, 9), st.booleans())
def test_a_chart_keeps_to_its_room_and_to_its_signs(values: list[float], width: int, height: int, plain: bool) -> None:
    lines = chart(list(enumerate(values, start=1)), width, height, plain)
    assert len(lines) == height + 1
    assert max(map(len, lines)) <= width
    signs = set("".join(lines)) - set("0123456789 %round.-|│*")
    assert not signs if plain else all(0x2800 <= ord(sign) <= 0x28FF for sign in signs)
    assert lines[-1].split()[-1] == str(len(values))


def heights(lines: list[str]) -> list[int]:
    """In an ASCII chart, the line of each column's star, from the top."""
    body = [line.split("|", 1)[1].ljust(200) for line in lines[:-1]]
    return [row for column in range(200) for row, line in enumerate(body) if line[column] == "*"]


def test_a_curve_that_rises_rises() -> None:
    found = heights(chart([(n, n / 100) for n in range(1, 101)], 60, 8, ascii_only=True))
    assert found == sorted(found, reverse=True)
    assert (found[0], found[-1]) == (7, 0)


def test_gaps_between_evaluated_rounds_are_bridged() -> None:
    lines = chart([(1, 0.2), (100, 0.8)], 60, 5, ascii_only=True)
    assert len(heights(lines)) == 60 - len(lines[0].split("|")[0]) - 1


def test_ends_of_both_axes_are_named() -> None:
    lines = chart([(5, 0.2), (25, 0.8)], 60, 5)
    assert lines[0].startswith(" 83 %")
    assert lines[-2].startswith(" 17 %")
    assert lines[-1].split() == ["5", "round", "25"]
    assert chart([]) == []


@given(CURVE, st.integers(1, 60))
def test_a_sparkline_shows_the_lowest_the_highest_and_the_latest(values: list[float], width: int) -> None:
    line = sparkline(values, width)
    assert len(line) == min(len(values), width)
    assert set(line) <= set(BARS)
    if len(values) <= width and max(values) > min(values):
        assert line[values.index(max(values))] == BARS[-1]
        assert line[values.index(min(values))] == BARS[0]
    assert len(sparkline(values, width, ascii_only=True)) == len(line)


@pytest.mark.parametrize("values", [[], [0.5], [0.5, 0.5]])
def test_little_is_no_problem(values: list[float]) -> None:
    assert len(sparkline(values)) == len(values)
    assert set(sparkline(values, ascii_only=True)) <= set(ASCII_BARS)
