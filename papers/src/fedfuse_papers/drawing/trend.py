"""Accuracy over the values of one setting, a line per other setting: mean and range of the seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from matplotlib.figure import Figure

from fedfuse.report.limits import accuracy_limits
from fedfuse.report.palette import shorten
from fedfuse.report.saving import save
from fedfuse.report.style import (
    INK,
    TEXT_SIZE,
    TITLE_BESIDE_LEGEND,
    clean,
    draw_legend,
    height_for,
    line_style,
    new_figure,
    set_title,
)

Trend = Mapping[str, Sequence[float]]
"""The seeds' accuracies in percent, by the label of the setting."""


def draw_trend(path: Path, lines: Mapping[str, Trend], x: str, title: str) -> None:
    """Write a PNG with one line per entry; the setting's labels are equally far apart, in their own order."""
    save(trend_figure(lines, x, title), path)


def trend_figure(lines: Mapping[str, Trend], x: str, title: str) -> Figure:
    """The picture of :func:`draw_trend`."""
    labels = list(dict.fromkeys(label for trend in lines.values() for label in trend))
    figure = new_figure(height=height_for(len(lines)))
    axes = figure.add_subplot()
    clean(axes)
    set_title(axes, title, TITLE_BESIDE_LEGEND)
    entries = []
    for index, (name, trend) in enumerate(lines.items()):
        there = [position for position, label in enumerate(labels) if trend.get(label)]
        values = [trend[labels[position]] for position in there]
        style = line_style(index)
        (line,) = axes.plot(there, [fmean(seeds) for seeds in values], linewidth=1.8, markersize=4.5, **style)
        axes.fill_between(there, list(map(min, values)), list(map(max, values)), color=style["color"], alpha=0.15)
        entries.append((shorten(name), line))
    everything = [value for trend in lines.values() for seeds in trend.values() for value in seeds]
    if everything:
        axes.set_ylim(*accuracy_limits(min(everything), max(everything)))
    axes.set_xticks(range(len(labels)), labels)
    axes.set_xlabel(x.replace("_", " "), fontsize=TEXT_SIZE, color=INK)
    axes.set_ylabel("Test accuracy (%)", fontsize=TEXT_SIZE, color=INK)
    draw_legend(figure, entries)
    return figure
