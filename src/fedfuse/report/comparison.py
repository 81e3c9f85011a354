"""Several methods, each over several seeds: the mean as a line, and in a band what the legend says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from fedfuse.core.views import Band
from fedfuse.report.curves import measured
from fedfuse.report.intervals import Interval
from fedfuse.report.palette import shorten
from fedfuse.report.saving import save
from fedfuse.report.seeds import in_common
from fedfuse.report.style import (
    ACCURACY,
    GRAY,
    ROUND,
    Points,
    Scale,
    draw_legend,
    draw_line,
    draw_target,
    fit_to_data,
    height_for,
    line_style,
    new_axes,
    new_figure,
)

MEANINGS: Mapping[Band, str] = {
    "range": "shade: lowest to\nhighest seed;\n±: std over seeds",
    "95": "shade and ±: 95 %\ninterval of the mean",
    "std": "shade and ±: std\nover seeds",
    "none": "±: std over seeds",
}
Seed = Sequence[tuple[Any, ...]]
"""What one seed measured: round and value, or round, what was spent by then, and value."""
COLUMN_WIDTH = 4.5
"""Inches, below which a legend stands below the axes."""


@dataclass(frozen=True)
class Spread:
    """What the seeds of one method did in the rounds that all of them measured."""

    seeds: int
    mean: Points
    lowest: Points
    highest: Points
    last: Sequence[float]

    @staticmethod
    def over(seeds: Sequence[Seed], band: Band = "range") -> Spread:
        """A round that some seed did not measure is left out."""
        by_round = [{point[0]: point[-2:] for point in seed} for seed in map(_finite, seeds) if seed]
        shared = list(in_common(by_round).values())
        values = [[value for _, value in seed] for seed in shared]
        spent = [fmean(place for place, _ in seed) for seed in shared]
        low, high = zip(*(_edges(several, band) for several in values), strict=True) if values else ((), ())
        return Spread(
            seeds=len(by_round),
            mean=list(zip(spent, map(fmean, values), strict=True)),
            lowest=list(zip(spent, low, strict=True)),
            highest=list(zip(spent, high, strict=True)),
            last=values[-1] if values else (),
        )

    def describe(self, scale: Scale = ACCURACY, band: Band = "range") -> str:
        """Mean and deviation or interval in the last round that all seeds measured."""
        if not self.last:
            return "no common round"
        unit, digits = (" %", 1) if scale.unit == "%" else ("", 3)
        mean = f"{scale.factor * fmean(self.last):.{digits}f}"
        if self.seeds < 2:
            return f"{mean}{unit}"
        reach = Interval.of(self.last).reach if band == "95" else stdev(self.last)
        return f"{mean} ± {scale.factor * (reach or 0):.{digits}f}{unit}"


def _finite(seed: Seed) -> Seed:
    """What can be drawn."""
    drawable = {number for number, _ in measured((point[0], point[-1]) for point in seed)}
    return [point for point in seed if point[0] in drawable]


def _edges(values: Sequence[float], band: Band) -> tuple[float, float]:
    if band == "range" or len(values) < 2:
        return min(values), max(values)
    if band == "none":
        return fmean(values), fmean(values)
    reach = Interval.of(values).reach if band == "95" else stdev(values)
    return fmean(values) - (reach or 0), fmean(values) + (reach or 0)


def draw_comparison(
    path: Path, curves: Mapping[str, Sequence[Seed]], target: float | None, title: str, **options: Any
) -> None:
    """Write a picture with one line per label; ``curves`` holds round and accuracy of every seed.

    ``options`` are those of :func:`comparison_figure`.
    """
    save(comparison_figure(curves, target, title, **options), path)


def comparison_figure(
    curves: Mapping[str, Sequence[Seed]],
    target: float | None,
    title: str,
    x: Scale = ROUND,
    y: Scale = ACCURACY,
    band: Band = "range",
    size: tuple[float, float] | None = None,
) -> Figure:
    """The picture of :func:`draw_comparison`; lines carry the labels of ``curves``. ``size`` is in inches."""
    spreads = {label: Spread.over(seeds, band) for label, seeds in curves.items()}
    several = any(spread.seeds > 1 for spread in spreads.values())
    figure = new_figure(*size) if size else new_figure(height=height_for(2 * len(spreads) + 3 * several))
    is_narrow = size is not None and size[0] < COLUMN_WIDTH
    axes = new_axes(figure, title, x, y, is_narrow)
    draw_target(axes, target)
    entries: list[tuple[str, Artist]] = []
    for index, (label, spread) in enumerate(spreads.items()):
        style = line_style(index)
        if spread.seeds > 1 and spread.mean and band != "none":
            spent = [x.factor * place for place, _ in spread.mean]
            lowest, highest = ([y.factor * value for _, value in edge] for edge in (spread.lowest, spread.highest))
            axes.fill_between(spent, lowest, highest, color=style["color"], alpha=0.15, linewidth=0)
        line = draw_line(axes, spread.mean, x, y, label=label, zorder=3, **style)
        entries.append((f"{shorten(label)}\n{spread.describe(y, band)}{_seeds(spread.seeds)}", line))
    if several:
        colour = "none" if band == "none" else GRAY
        entries.append((MEANINGS[band], Patch(facecolor=colour, alpha=0.3, linewidth=0)))
    fit_to_data(axes, x, y)
    draw_legend(figure, entries, is_narrow)
    return figure


def _seeds(count: int) -> str:
    return f" ({count} seeds)" if count > 1 else ""
