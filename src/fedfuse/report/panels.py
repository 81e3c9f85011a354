"""Small pictures side by side, each with a title of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedfuse.report.style import GRAY, INK, SMALL_SIZE, TEXT_SIZE, new_figure

T = TypeVar("T")
SIDE = 2.7  # inches
MOST_COLUMNS = 5


def panels(contents: Mapping[str, T], side: float = SIDE) -> tuple[Figure, Iterator[tuple[Axes, T]]]:
    """A figure with one square per entry, and the squares with what belongs into them."""
    rows = max(1, math.ceil(len(contents) / MOST_COLUMNS))
    columns = max(1, math.ceil(len(contents) / rows))
    figure = new_figure(side * columns, (side + 0.3) * rows)
    squares = [figure.add_subplot(rows, columns, position + 1) for position in range(len(contents))]
    for axes, title in zip(squares, contents, strict=True):
        text = axes.set_title("", fontsize=TEXT_SIZE, color=INK)
        text.set_parse_math(False)
        text.set_text(title)
    return figure, zip(squares, contents.values(), strict=True)


def frame(axes: Axes) -> None:
    """No ticks: positions in these pictures have no unit."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.tick_params(labelsize=SMALL_SIZE)
    for spine in axes.spines.values():
        spine.set_color(GRAY)
