"""What a model takes each class for: a square of shades, a row for each true class, a column for each answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedfuse.core.plain_text import one_line
from fedfuse.report.many_clients import SHADES
from fedfuse.report.palette import shorten
from fedfuse.report.partition import LONGEST_NAME, ticks
from fedfuse.report.saving import save
from fedfuse.report.style import GRAY, INK, SMALL_SIZE, TEXT_SIZE, new_figure, set_title

CELL, MARGIN = 0.42, 2.4  # inches
SIDES = (5.0, 12.0)
MOST_NUMBERS = 25  # classes, above which a cell has no room for its number
DARK = 0.55  # shares above this have white numbers


def draw_confusion(path: Path, counts: Sequence[Sequence[int]], names: Sequence[str], about: str) -> None:
    """Write the square of ``counts``, a row for each true class."""
    save(confusion_figure(counts, names, about), path)


def confusion_figure(counts: Sequence[Sequence[int]], names: Sequence[str], about: str) -> Figure:
    """The picture of :func:`draw_confusion`; cells are shares of their row in percent."""
    shares = row_shares(counts)
    side = float(np.clip(CELL * len(shares) + MARGIN, *SIDES))
    figure = new_figure(side, side - 0.6)
    axes = figure.add_subplot()
    image = axes.imshow(100 * shares, cmap=SHADES, vmin=0, vmax=100)
    set_title(axes, about, int(7 * side))
    _name(axes, names)
    if len(shares) <= MOST_NUMBERS:
        _write_numbers(axes, shares)
    bar = figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02)
    bar.ax.tick_params(labelsize=SMALL_SIZE, color=GRAY, labelcolor=INK)
    bar.outline.set_visible(False)
    bar.set_label("Share of the class (%)", fontsize=SMALL_SIZE, color=INK)
    return figure


def row_shares(counts: Sequence[Sequence[int]]) -> npt.NDArray[np.float64]:
    """Each row by its sum; zeros for a class that no example has."""
    numbers: npt.NDArray[np.float64] = np.asarray(counts, dtype=np.float64)
    shares: npt.NDArray[np.float64] = numbers / np.maximum(numbers.sum(axis=1, keepdims=True), 1)
    return shares


def _name(axes: Axes, names: Sequence[str]) -> None:
    shown = ticks(len(names), MOST_NUMBERS)
    words = [shorten(one_line(names[place]), LONGEST_NAME) for place in shown]
    axes.xaxis.set_ticks(shown, words, rotation=90 if any(len(word) > 2 for word in words) else 0, parse_math=False)
    axes.yaxis.set_ticks(shown, words, parse_math=False)
    axes.set_xlabel("Answer", fontsize=TEXT_SIZE, color=INK)
    axes.set_ylabel("True class", fontsize=TEXT_SIZE, color=INK)
    axes.tick_params(length=0, labelsize=SMALL_SIZE, labelcolor=INK)
    axes.set_frame_on(False)


def _write_numbers(axes: Axes, shares: npt.NDArray[np.float64]) -> None:
    for (row, column), share in np.ndenumerate(shares):
        if share:
            colour = "white" if share > DARK else INK
            size = SMALL_SIZE - 1
            axes.text(column, row, f"{100 * share:.0f}", ha="center", va="center", fontsize=size, color=colour)
