"""One run: the metrics that it names per round, a panel each and a colour per model.

A metric of several values, such as one per class, has a line for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fedfuse.federation import RoundRecord
from fedfuse.report.curves import measured
from fedfuse.report.panels import panels
from fedfuse.report.style import INK, TEXT_SIZE, Points, clean, draw_legend, line_style, save, shorten

SIDE = 3.4  # inches
Line = tuple[str, Points]
"""The model, and its values."""


def draw_metrics(path: Path, history: Sequence[RoundRecord]) -> None:
    """Write the curves of all metrics as a PNG."""
    save(metrics_figure(history), path)


def metrics_figure(history: Sequence[RoundRecord]) -> Figure:
    """The picture of :func:`draw_metrics`; each line's label is its model."""
    lines = lines_of(history)
    models = dict.fromkeys(model for several in lines.values() for model, _ in several)
    styles = {model: {**line_style(index), "markersize": 3.5, "linewidth": 1.3} for index, model in enumerate(models)}
    figure, squares = panels(lines, side=SIDE)
    for axes, own in squares:
        clean(axes)
        axes.set_xlabel("Round", fontsize=TEXT_SIZE, color=INK)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        for model, points in own:
            axes.plot([number for number, _ in points], [value for _, value in points], label=model, **styles[model])
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
        lines.setdefault(name.partition(".")[0], []).append((model, measured(line)))
    return lines
