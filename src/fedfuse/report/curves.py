"""One run: test accuracy per round and prototype, before and after fusion, beside the ensemble's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedfuse.federation import RoundRecord
from fedfuse.report.palette import shorten
from fedfuse.report.saving import save
from fedfuse.report.style import (
    GRAY,
    INK,
    Points,
    draw_legend,
    draw_line,
    draw_target,
    fit_to_data,
    height_for,
    line_style,
    new_axes,
    new_figure,
)

DASHED: dict[str, Any] = {"linestyle": (0, (4, 2)), "linewidth": 1.3, "markerfacecolor": "white"}


def draw_curves(path: Path, history: Sequence[RoundRecord], target: float | None, about: str = "") -> None:
    """Write the accuracy curves of a run; rounds that were not evaluated are skipped. ``about`` says whose they are."""
    save(curves_figure(history, target, about), path)


def curves_figure(history: Sequence[RoundRecord], target: float | None, about: str = "") -> Figure:
    """The picture of :func:`draw_curves`; each line's label says what it shows."""
    before, after = before_fusion(history), after_fusion(history)
    ensemble = measured((record.round, record.ensemble_accuracy) for record in history)
    figure = new_figure(height=height_for(len(after) + 2))
    axes = new_axes(figure, f"{about}: test accuracy" if about else "Test accuracy per round")
    draw_target(axes, target)
    entries: list[tuple[str, Artist]] = []
    for index, (name, points) in enumerate(after.items()):
        line = draw_line(axes, points, label=f"{name}, after fusion", zorder=3, **line_style(index))
        entries.append((f"{shorten(name)}, last {100 * points[-1][1]:.1f} %", line))
        if name in before:
            style = {**line_style(index), **DASHED}
            draw_line(axes, before[name], label=f"{name}, before fusion", zorder=2.5, **style)
    if before:
        entries.append(("before fusion", Line2D([], [], color=INK, marker="o", markersize=4.5, **DASHED)))
    if ensemble:
        line = draw_line(axes, ensemble, label="ensemble", color=GRAY, marker="x", linewidth=1.3, zorder=2)
        entries.append(("ensemble of the clients", line))
    fit_to_data(axes)
    draw_legend(figure, entries)
    return figure


def after_fusion(history: Sequence[RoundRecord]) -> dict[str, Points]:
    """The accuracy of every prototype that was evaluated at least once."""
    names = dict.fromkeys(name for record in history for name in record.prototypes)
    curves = {
        name: measured((r.round, r.prototypes[name].accuracy) for r in history if name in r.prototypes)
        for name in names
    }
    return {name: points for name, points in curves.items() if points}


def before_fusion(history: Sequence[RoundRecord]) -> dict[str, Points]:
    """The accuracy of the merged weights, for the prototypes that a fusion changed in some round."""
    changed = dict.fromkeys(
        name
        for record in history
        for name, prototype in record.prototypes.items()
        if prototype.accuracy_before_fusion not in (None, prototype.accuracy)
    )
    return {
        name: measured((r.round, r.prototypes[name].accuracy_before_fusion) for r in history if name in r.prototypes)
        for name in changed
    }


def measured(values: Iterable[tuple[float, float | None]]) -> Points:
    """What can be drawn: values that are there and finite."""
    return [(number, value) for number, value in values if value is not None and math.isfinite(value)]
