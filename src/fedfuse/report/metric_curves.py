"""One run: the metrics that it names per round, a panel each and a colour per model.

A metric of several values, such as one per class, has a line for each of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fedfuse.core.plain_text import one_line
from fedfuse.federation import RoundRecord
from fedfuse.report.curves import measured
from fedfuse.report.palette import shorten
from fedfuse.report.panels import panels
from fedfuse.report.saving import save
from fedfuse.report.style import INK, SMALL_SIZE, TEXT_SIZE, TITLE_SIZE, Points, clean, draw_legend, line_style

SIDE = 3.4  # inches
MOST_NAMED = 24  # lines of one panel
LEAST_DISTANCE = 0.045  # of a panel's height, between two names
LONGEST_NAME = 14  # letters
Line = tuple[str, str, Points]
"""The model, which of several values it is (empty if there is one), and the values."""


def draw_metrics(path: Path, history: Sequence[RoundRecord], about: str = "") -> None:
    """Write the curves of all metrics; ``about`` says whose they are."""
    save(metrics_figure(history, about), path)


def metrics_figure(history: Sequence[RoundRecord], about: str = "") -> Figure:
    """The picture of :func:`draw_metrics`; each line's label is its model."""
    lines = lines_of(history)
    models = dict.fromkeys(model for several in lines.values() for model, _, _ in several)
    styles = {model: {**line_style(index), "markersize": 3.5, "linewidth": 1.3} for index, model in enumerate(models)}
    figure, squares = panels(lines, side=SIDE)
    if about:
        figure.suptitle(about, x=0.02, ha="left", fontsize=TITLE_SIZE, color=INK, parse_math=False)
    for axes, own in squares:
        clean(axes)
        axes.set_xlabel("Round", fontsize=TEXT_SIZE, color=INK)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        for model, _, points in own:
            axes.plot([number for number, _ in points], [value for _, value in points], label=model, **styles[model])
        _name_ends(axes, own, {model: str(style["color"]) for model, style in styles.items()})
    if len(styles) > 1:
        draw_legend(figure, [(shorten(model), Line2D([], [], **style)) for model, style in styles.items()])
    return figure


def lines_of(history: Sequence[RoundRecord]) -> dict[str, list[Line]]:
    """By metric, the lines of all its values and all models."""
    values: dict[tuple[str, str], list[tuple[int, float | None]]] = {}
    for record in history:
        for model, own in record.prototypes.items():
            for name, value in own.metrics.items():
                values.setdefault((name, model), []).append((record.round, value))
    lines: dict[str, list[Line]] = {}
    for (name, model), line in values.items():
        metric, _, which = name.partition(".")
        lines.setdefault(metric, []).append((model, which, measured(line)))
    return lines


def _name_ends(axes: Axes, lines: Sequence[Line], colours: Mapping[str, str]) -> None:
    """Where a metric has several values, each line says at its end which it is, such as the class."""
    ends = [(points[-1], which, colours[model]) for model, which, points in lines if which and points]
    if not ends or len(ends) > MOST_NAMED:
        return
    bottom, top = axes.get_ylim()
    lowest = -math.inf
    for (number, value), which, colour in sorted(ends, key=lambda end: end[0][1]):
        height = max((value - bottom) / (top - bottom), lowest + LEAST_DISTANCE)
        lowest = height
        axes.annotate(
            shorten(one_line(which), LONGEST_NAME),
            xy=(number, value),
            xytext=(1.02, height),
            textcoords="axes fraction",
            fontsize=SMALL_SIZE - 1,
            color=colour,
            va="center",
            parse_math=False,
        )
