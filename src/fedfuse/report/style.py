"""The common look of all pictures: colours, sizes, axes and how a figure becomes a file.

Figures are made without pyplot and without touching ``rcParams``: no display, no global state, safe in any thread.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from fedfuse.core.files import write_bytes

Points = Sequence[tuple[int, float]]
"""Rounds and their accuracy, from 0 to 1."""

# Okabe and Ito's palette for all kinds of colour vision, without black and the yellow that white paper swallows
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# five markers and six colours have no common divisor: thirty lines before a pair returns
MARKERS = ("o", "s", "^", "D", "v")
# lines beyond the sixth, whose colours have been seen before, are dashed
DASHES: tuple[Any, ...] = ("solid", (0, (5, 2)), (0, (1, 1)))
INK, GRAY, GRID = "#222222", "#8A8A8A", "#E4E4E4"

DOTS_PER_INCH = 150
WIDTH, HEIGHT = 8.0, 4.5
TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 11.5, 10.0, 9.0
TITLE_LENGTH, TITLE_BESIDE_LEGEND, LABEL_LENGTH = 84, 50, 28
MOST_MARKERS = 25
LEGEND_ROW = 0.23
LEAST_SPAN = 5.0  # percentage points; less would make noise look like progress


def new_figure(width: float = WIDTH, height: float = HEIGHT) -> Figure:
    """An empty figure, sizes in inches, that makes room for its own labels."""
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
    return Figure(figsize=(width, height), dpi=DOTS_PER_INCH, facecolor="white", layout=layout)


def save(figure: Figure, path: Path) -> None:
    """Write a PNG whose bytes depend on the picture only: no date, no version of the library."""
    buffer = BytesIO()
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})
    write_bytes(path, buffer.getvalue())


def height_for(legend_rows: int) -> float:
    """A height at which a legend of so many rows fits."""
    return max(HEIGHT, 0.6 + LEGEND_ROW * legend_rows)


def set_title(axes: Axes, title: str, length: int = TITLE_LENGTH) -> None:
    text = axes.set_title("", loc="left", fontsize=TITLE_SIZE, color=INK, pad=10)
    text.set_parse_math(False)
    text.set_text(textwrap.fill(title, length))


def clean(axes: Axes) -> None:
    """Light grid behind the data, two spines, quiet ticks."""
    axes.set_axisbelow(True)
    axes.grid(True, color=GRID, linewidth=0.8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(GRAY)
    axes.tick_params(labelsize=SMALL_SIZE, color=GRAY, labelcolor=INK)


def accuracy_axes(figure: Figure, title: str) -> Axes:
    """Axes of rounds and accuracy in percent."""
    axes = figure.add_subplot()
    clean(axes)
    set_title(axes, title, TITLE_BESIDE_LEGEND)
    axes.set_xlabel("Round", fontsize=TEXT_SIZE, color=INK)
    axes.set_ylabel("Test accuracy (%)", fontsize=TEXT_SIZE, color=INK)
    return axes


def line_style(index: int) -> dict[str, Any]:
    """The look of the line with this position; markers differ too, so that colour is never the only sign."""
    turn = index // len(COLOURS)
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": DASHES[turn % len(DASHES)],
    }


def draw_line(axes: Axes, points: Points, **style: Any) -> Line2D:
    """Accuracy in percent over rounds, with a marker per point as long as there are few."""
    rounds = [number for number, _ in points]
    percents = [100 * accuracy for _, accuracy in points]
    common = {"linewidth": 1.8, "markersize": 4.5, "markevery": max(1, math.ceil(len(points) / MOST_MARKERS))}
    (line,) = axes.plot(rounds, percents, **{**common, **style})
    return line


def draw_target(axes: Axes, target: float | None) -> None:
    """A thin line; its label stands at the left, where curves are usually still below."""
    if target is None:
        return
    axes.axhline(100 * target, color=INK, linewidth=0.9, linestyle=(0, (1, 2)), zorder=1.5)
    axes.annotate(
        f"target {100 * target:.4g} %",
        xy=(0, 100 * target),
        xycoords=axes.get_yaxis_transform(),
        xytext=(5, 2),
        textcoords="offset points",
        va="bottom",
        fontsize=SMALL_SIZE,
        color=INK,
        path_effects=[withStroke(linewidth=3, foreground="white")],
        zorder=4,
    )


def fit_to_data(axes: Axes) -> None:
    """Limits around what was drawn, with whole rounds as ticks; says so if nothing was."""
    (first, last), (lowest, highest) = axes.dataLim.intervalx, axes.dataLim.intervaly
    if not axes.lines or not math.isfinite(first):
        axes.text(0.5, 0.5, "no evaluated round", transform=axes.transAxes, ha="center", va="bottom", color=GRAY)
        axes.set_xticks([])
    elif first == last:
        axes.set_xlim(first - 0.5, first + 0.5)
        axes.set_xticks([int(first)])
    else:
        axes.set_xlim(first - 0.02 * (last - first), last + 0.02 * (last - first))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=12, integer=True))
    axes.set_ylim(*(accuracy_limits(lowest, highest) if math.isfinite(lowest) else (0, 100)))


def accuracy_limits(lowest: float, highest: float) -> tuple[float, float]:
    """Limits in percent with some air, hardly beyond 0 and 100, that never magnify a tiny range."""
    missing = max(0.0, LEAST_SPAN - (highest - lowest)) / 2
    lowest, highest = lowest - missing, highest + missing
    span = highest - lowest
    return max(lowest - 0.05 * span, -0.02 * span), min(highest + 0.05 * span, 100 + 0.02 * span)


def draw_legend(figure: Figure, entries: Sequence[tuple[str, Line2D]]) -> None:
    """A legend beside the axes. Labels are set afterwards: matplotlib hides those that start with an underscore."""
    if not entries:
        return
    legend = figure.legend(
        [handle for _, handle in entries],
        [str(position) for position in range(len(entries))],
        loc="outside right upper",
        fontsize=SMALL_SIZE,
        labelcolor=INK,
        frameon=False,
        handlelength=3.6,
        labelspacing=0.55,
    )
    for text, (label, _) in zip(legend.get_texts(), entries, strict=True):
        text.set_parse_math(False)
        text.set_text(label)


def shorten(label: str, limit: int = LABEL_LENGTH) -> str:
    """A long name without its middle, since method and seed stand at its ends."""
    if len(label) <= limit:
        return label
    kept = limit - 1
    return f"{label[: kept - kept // 2]}…{label[-(kept // 2) :]}"
