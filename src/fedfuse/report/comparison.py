"""Several methods, each over several seeds: the mean as a line, all seeds within a band."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedfuse.report.curves import measured
from fedfuse.report.style import (
    Points,
    accuracy_axes,
    draw_legend,
    draw_line,
    draw_target,
    fit_to_data,
    height_for,
    line_style,
    new_figure,
    save,
    shorten,
)


@dataclass(frozen=True)
class Spread:
    """What the seeds of one method did in the rounds that all of them measured."""

    seeds: int
    mean: Points
    lowest: Points
    highest: Points
    last: Sequence[float]

    @staticmethod
    def over(seeds: Sequence[Points]) -> Spread:
        """A round that some seed did not measure is left out: the mean of fewer seeds would jump."""
        by_round = [dict(points) for points in map(measured, seeds) if points]
        shared = sorted(set.intersection(*map(set, by_round))) if by_round else []
        values = {number: [seed[number] for seed in by_round] for number in shared}
        return Spread(
            seeds=len(by_round),
            mean=[(number, fmean(several)) for number, several in values.items()],
            lowest=[(number, min(several)) for number, several in values.items()],
            highest=[(number, max(several)) for number, several in values.items()],
            last=values[shared[-1]] if shared else (),
        )

    def describe(self) -> str:
        """Mean and sample standard deviation in percent, in the last round that all seeds measured."""
        if not self.last:
            return "no common round"
        mean = f"{100 * fmean(self.last):.1f}"
        return f"{mean} ± {100 * stdev(self.last):.1f} %" if self.seeds > 1 else f"{mean} %"


def draw_comparison(path: Path, curves: Mapping[str, Sequence[Points]], target: float | None, title: str) -> None:
    """Write a PNG with one line per label; ``curves`` holds (round, accuracy) of every seed."""
    save(comparison_figure(curves, target, title), path)


def comparison_figure(curves: Mapping[str, Sequence[Points]], target: float | None, title: str) -> Figure:
    """The picture of :func:`draw_comparison`; lines carry the labels of ``curves``."""
    spreads = {label: Spread.over(seeds) for label, seeds in curves.items()}
    figure = new_figure(height=height_for(2 * len(spreads)))
    axes = accuracy_axes(figure, title)
    draw_target(axes, target)
    entries: list[tuple[str, Line2D]] = []
    for index, (label, spread) in enumerate(spreads.items()):
        style = line_style(index)
        if spread.seeds > 1 and spread.mean:
            rounds = [number for number, _ in spread.mean]
            lowest, highest = ([100 * value for _, value in edge] for edge in (spread.lowest, spread.highest))
            axes.fill_between(rounds, lowest, highest, color=style["color"], alpha=0.15, linewidth=0)
        line = draw_line(axes, spread.mean, label=label, zorder=3, **style)
        entries.append((f"{shorten(label)}\n{spread.describe()}{_seeds(spread.seeds)}", line))
    fit_to_data(axes)
    draw_legend(figure, entries)
    return figure


def _seeds(count: int) -> str:
    return f" ({count} seeds)" if count > 1 else ""
