"""Curves for terminals: a few lines of Braille dots, or of ASCII where nothing else can be shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from fedfuse.report.limits import accuracy_limits

Points = Sequence[tuple[float, float]]
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bits of a Braille sign, from top to bottom and from left to right."""
BLANK = 0x2800
BARS, ASCII_BARS = "▁▂▃▄▅▆▇█", "_.-=+*#@"


def sparkline(
    values: Sequence[float], width: int = 40, ascii_only: bool = False, limits: tuple[float, float] | None = None
) -> str:
    """Values as one line of bars; neighbours share one if they are many.

    The lowest and the highest bar are the lowest and the highest value, or the ``limits`` of several such lines.
    """
    bars = ASCII_BARS if ascii_only else BARS
    shown = _thinned(values, width)
    low, high = limits or (min(shown, default=0.0), max(shown, default=0.0))
    span = high - low or 1.0
    return "".join(bars[round((value - low) / span * (len(bars) - 1))] for value in shown)


def _thinned(values: Sequence[float], most: int) -> list[float]:
    """The last of each group of neighbours, so that the latest value is always seen."""
    count = min(len(values), most)
    return [values[-(-(place + 1) * len(values) // count) - 1] for place in range(count)]


def chart(points: Points, width: int = 72, height: int = 5, ascii_only: bool = False) -> list[str]:
    """Percentages over rounds as lines of text, with the ends of both axes named; nothing without points."""
    if not points:
        return []
    values = [100 * value for _, value in points]
    low, high = accuracy_limits(min(values), max(values))
    top, bottom = f"{high:.0f} %", f"{low:.0f} %"
    margin = max(len(top), len(bottom)) + 1
    first, last = points[0][0], points[-1][0]
    inside = width - margin - 1
    places = [((number - first) / (last - first or 1), (100 * value - low) / (high - low)) for number, value in points]
    rows = _ascii(places, inside, height) if ascii_only else _braille(places, inside, height)
    axis = "|" if ascii_only else "│"
    names = [top, *[""] * (len(rows) - 2), bottom] if len(rows) > 1 else [top]
    ends = f"{first:g}".ljust(inside - len(f"round {last:g}")) + f"round {last:g}"
    drawn = [f"{name:>{margin}}{axis}{row}".rstrip() for name, row in zip(names, rows, strict=True)]
    return [*drawn, " " * (margin + 1) + ends]


def _braille(places: Sequence[tuple[float, float]], width: int, height: int) -> list[str]:
    """Each sign has two columns of four dots."""
    columns, rows = 2 * width, 4 * height
    grid = [[0] * width for _ in range(height)]
    for column, value in enumerate(_sampled(places, columns)):
        if value is not None:
            row = min(rows - 1, int((1 - value) * rows))
            grid[row // 4][column // 2] |= DOTS[row % 4][column % 2]
    return ["".join(chr(BLANK + dots) if dots else " " for dots in row) for row in grid]


def _ascii(places: Sequence[tuple[float, float]], width: int, height: int) -> list[str]:
    grid = [[" "] * width for _ in range(height)]
    for column, value in enumerate(_sampled(places, width)):
        if value is not None:
            grid[min(height - 1, int((1 - value) * height))][column] = "*"
    return ["".join(row) for row in grid]


def _sampled(places: Sequence[tuple[float, float]], columns: int) -> list[float | None]:
    """The height of the line through all places at every column; a single place is a dot."""
    found: list[float | None] = [None] * columns
    for x, y in places:
        found[min(columns - 1, math.floor(x * (columns - 1) + 0.5))] = y
    known = [column for column, value in enumerate(found) if value is not None]
    for left, right in pairwise(known):
        one, other = found[left] or 0.0, found[right] or 0.0
        for column in range(left + 1, right):
            found[column] = one + (other - one) * (column - left) / (right - left)
    return found
