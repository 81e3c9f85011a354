"""The common look of all pictures: colours, sizes, axes.

Figures are made without pyplot and without touching ``rcParams``: no display, no global state, safe in any thread.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fedfuse.report.limits import accuracy_limits
from fedfuse.report.palette import COLOURS, DASHES, MARKERS

Points = Sequence[tuple[float, float]]
"""Rounds, or what was spent by then, and a value."""

INK, GRAY, GRID = "#222222", "#8A8A8A", "#E4E4E4"

DOTS_PER_INCH = 150
WIDTH, HEIGHT = 8.0, 4.5
TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 11.5, 10.0, 9.0
TITLE_LENGTH, TITLE_BESIDE_LEGEND = 84, 50
MOST_MARKERS = 25
LEGEND_ROW = 0.23
LEGEND_COLUMNS = 2  # of one below the axes
NARROW_TITLE = 44  # letters in a line
NARROWER = 2.0  # points that letters lose in a narrow picture
INCHES_PER_TICK = 0.55


@dataclass(frozen=True)
class Scale:
    """How a quantity is shown on an axis: what it is called there, and by which factor."""

    label: str
    factor: float = 1.0
    unit: str = ""


ROUND = Scale("Round", unit="rounds")
ACCURACY = Scale("Test accuracy (%)", 100.0, "%")


def new_figure(width: float = WIDTH, height: float = HEIGHT) -> Figure:
    """An empty figure, sizes in inches, that makes room for its own labels."""
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
    return Figure(figsize=(width, height), dpi=DOTS_PER_INCH, facecolor="white", layout=layout)


def height_for(legend_rows: int) -> float:
    """A height at which a legend of so many rows fits."""
    return max(HEIGHT, 0.6 + LEGEND_ROW * legend_rows)


def set_title(axes: Axes, title: str, length: int = TITLE_LENGTH, size: float = TITLE_SIZE) -> None:
    text = axes.set_title("", loc="left", fontsize=size, color=INK, pad=10)
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


def new_axes(figure: Figure, title: str, x: Scale = ROUND, y: Scale = ACCURACY, is_narrow: bool = False) -> Axes:
    """Axes of what was spent, rounds if nothing else is said, and what was measured."""
    axes, smaller = figure.add_subplot(), NARROWER if is_narrow else 0.0
    clean(axes)
    axes.tick_params(labelsize=SMALL_SIZE - smaller)
    set_title(axes, title, NARROW_TITLE if is_narrow else TITLE_BESIDE_LEGEND, TITLE_SIZE - smaller)
    axes.set_xlabel(x.label, fontsize=TEXT_SIZE - smaller, color=INK, parse_math=False)
    axes.set_ylabel(y.label, fontsize=TEXT_SIZE - smaller, color=INK, parse_math=False)
    return axes


def line_style(index: int) -> dict[str, Any]:
    """The look of the line with this position; markers differ too, so that colour is never the only sign."""
    turn = index // len(COLOURS)
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": (0, dashes) if (dashes := DASHES[turn % len(DASHES)]) else "solid",
    }


def draw_line(axes: Axes, points: Points, x: Scale = ROUND, y: Scale = ACCURACY, **style: Any) -> Line2D:
    """What was measured over what was spent, with a marker per point as long as there are few."""
    spent = [x.factor * place for place, _ in points]
    values = [y.factor * value for _, value in points]
    common = {"linewidth": 1.8, "markersize": 4.5, "markevery": max(1, math.ceil(len(points) / MOST_MARKERS))}
    (line,) = axes.plot(spent, values, **{**common, **style})
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
        bbox={"facecolor": "white", "alpha": 0.8, "pad": 0.8, "linewidth": 0},
        zorder=4,
    )


def fit_to_data(axes: Axes, x: Scale = ROUND, y: Scale = ACCURACY) -> None:
    """Limits around what was drawn, with whole rounds as ticks; says so if nothing was."""
    (first, last), (lowest, highest) = axes.dataLim.intervalx, axes.dataLim.intervaly
    if not axes.lines or not math.isfinite(first):
        axes.text(0.5, 0.5, "no evaluated round", transform=axes.transAxes, ha="center", va="bottom", color=GRAY)
        axes.set_xticks([])
    elif first == last:
        axes.set_xlim(first - 0.5, first + 0.5)
        axes.set_xticks([first])
    else:
        axes.set_xlim(first - 0.02 * (last - first), last + 0.02 * (last - first))
        bins = min(12, max(2, int(axes.figure.bbox.width / axes.figure.dpi / INCHES_PER_TICK)))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=bins, integer=x.unit == ROUND.unit))
    if y.unit == ACCURACY.unit:
        axes.set_ylim(*(accuracy_limits(lowest, highest) if math.isfinite(lowest) else (0, 100)))


def draw_legend(figure: Figure, entries: Sequence[tuple[str, Artist]], below: bool = False) -> None:
    """A legend beside the axes, or below. Labels are set afterwards: matplotlib hides those with a first underscore."""
    if not entries:
        return
    place: dict[str, Any] = {"loc": "outside right upper", "handlelength": 3.6}
    if below:
        place = {"loc": "outside lower center", "ncols": LEGEND_COLUMNS, "handlelength": 2.4, "columnspacing": 1.0}
    legend = figure.legend(
        [handle for _, handle in entries],
        [str(position) for position in range(len(entries))],
        fontsize=SMALL_SIZE - (NARROWER if below else 0),
        labelcolor=INK,
        frameon=False,
        labelspacing=0.55,
        **place,
    )
    for text, (label, _) in zip(legend.get_texts(), entries, strict=True):
        text.set_parse_math(False)
        text.set_text(label)
