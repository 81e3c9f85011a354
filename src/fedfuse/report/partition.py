"""Who holds what: clients by classes, a bubble's area is the number of examples (as in figure 2 of FedDF).

Many clients are drawn in shades, with neighbours together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from fedfuse.core.plain_text import one_line
from fedfuse.data import PartitionReport
from fedfuse.data.partition import ClientShare
from fedfuse.report.many_clients import Columns, draw_classes, draw_sizes
from fedfuse.report.palette import COLOURS, shorten
from fedfuse.report.panels import SIDE, panels
from fedfuse.report.saving import save
from fedfuse.report.style import GRAY, INK, SMALL_SIZE, TEXT_SIZE, clean, new_figure, set_title

Counts = npt.NDArray[np.int64]

MOST_CLIENTS = 200  # that are drawn one by one
CELL = 0.27  # inches per client and class, as long as the limits below allow it
WIDTHS, HEIGHTS = (8.0, 16.0), (5.4, 14.0)
MARGIN_WIDTH, MARGIN_HEIGHT = 2.0, 2.2
BARS_HEIGHT = 0.9
MOST_TICKS = 25
MOST_UPRIGHT = 60  # names side by side, each of which needs the height of a letter
LONGEST_LEVEL_NAME = 4  # letters; longer names of clients are turned upright
LONGEST_NAME = 18  # letters, of clients and classes; longer ones would take the room of the bubbles
LETTER, LEAST_ROOM = 0.085, 12  # inches; letters of a name that may be cut to lie level
MOST_DIGITS = 84  # that the labels of all bars may have together without touching
DIAMETERS = (3.0, 24.0)  # points; below, the largest bubble is a speck; above, the legend's lie over each other
FULL_QUANTILE, LARGEST_OVER_FULL = 0.98, 4.0
INSIDE = 0.75  # of a small picture's width, beside its labels
FILLED = 0.94  # of a cell's width, so that two full bubbles do not touch


def draw_partition(path: Path, report: PartitionReport, about: str = "") -> None:
    """Write the shares of all clients: classes as bubbles or shades, sizes as bars or one line.

    ``about`` is what the data are called.
    """
    save(partition_figure(report, about), path)


def partition_figure(report: PartitionReport, about: str = "") -> Figure:
    """The picture of :func:`draw_partition`: sizes above, classes below."""
    width, height = (
        float(np.clip(CELL * number + margin, *limits))
        for number, margin, limits in (
            (len(report.clients), MARGIN_WIDTH, WIDTHS),
            (report.classes, MARGIN_HEIGHT, HEIGHTS),
        )
    )
    figure = new_figure(width, height)
    ratios = (BARS_HEIGHT, height - MARGIN_HEIGHT)
    above, below = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": ratios})
    set_title(above, f"{about}, {_uncapitalised(describe(report))}" if about else describe(report))
    _prepare(above, below, report)
    if len(report.clients) <= MOST_CLIENTS:
        _draw_bars(above, report.sizes.tolist())
        _draw_bubbles(figure, below, report.counts())
    else:
        columns = Columns.of(report)
        draw_sizes(above, columns)
        draw_classes(figure, below, columns, full_count(columns.counts))
    _name_clients(below, report.clients, width)
    return figure


def describe(report: PartitionReport) -> str:
    """One line about the partition, with its settings by their names in the config."""
    settings = ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in report.partition.items()
        if name not in ("kind", "clients") and value not in (None, "", (), [], {})
    )
    kind = str(report.partition.get("kind", "partition")).replace("_", " ")
    assigned = f"{report.examples - report.unassigned:,} examples at {len(report.clients):,} clients"
    left = f", {report.unassigned:,} unassigned" if report.unassigned else ""
    return f"Partition: {kind}{f' ({settings})' if settings else ''}: {assigned}{left}"


def _uncapitalised(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _prepare(sizes: Axes, classes: Axes, report: PartitionReport) -> None:
    """What both ways of drawing share."""
    for axes, label in ((sizes, "Size"), (classes, "Class")):
        clean(axes)
        axes.set_ylabel(label, fontsize=TEXT_SIZE, color=INK)
    sizes.grid(False, axis="x")
    sizes.locator_params(axis="y", nbins=3, integer=True)
    sizes.tick_params(bottom=False, labelbottom=False)
    classes.set_xlabel("Client", fontsize=TEXT_SIZE, color=INK)
    classes.set_xlim(-0.5, max(len(report.clients), 1) - 0.5)
    classes.set_ylim(-0.5, max(report.classes, 1) - 0.5)
    _name(classes.yaxis, ticks(report.classes), report.called)


def _draw_bars(axes: Axes, sizes: list[int]) -> None:
    bars = axes.bar(range(len(sizes)), sizes, width=0.7, color=GRAY, linewidth=0)
    largest = max(sizes, default=0) or 1
    axes.set_ylim(0, 1.1 * largest)
    if sum(max(2, len(str(size))) for size in sizes) <= MOST_DIGITS:
        axes.bar_label(bars, padding=1, fontsize=SMALL_SIZE - 1, color=INK)
        axes.set_ylim(0, 1.3 * largest)
        axes.grid(False)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)


def _draw_bubbles(figure: Figure, axes: Axes, counts: Counts) -> None:
    held = np.nonzero(counts)
    examples = sample_counts(int(counts.max(initial=1)))
    style: dict[str, Any] = {"color": COLOURS[0], "linewidth": 0, "alpha": 0.8, "clip_on": False}
    bubbles = axes.scatter(held[0], held[1], s=0, label="examples", **style)
    samples = [axes.scatter([], [], s=0, **style) for _ in examples]
    legend = figure.legend(
        samples,
        [f"{count:,}" for count in examples],
        loc="outside right center",
        title="Examples",
        title_fontsize=SMALL_SIZE,
        fontsize=SMALL_SIZE,
        labelcolor=INK,
        frameon=False,
        labelspacing=1.3,
    )
    figure.draw_without_rendering()  # a cell's size is known once the layout is
    scale = full_diameter(figure, axes, counts) ** 2 / full_count(counts)
    bubbles.set_sizes(scale * counts[held])
    for handle, count in zip(cast("list[PathCollection]", legend.legend_handles), examples, strict=True):
        handle.set_sizes(np.array([scale * count]))


def _name_clients(axes: Axes, clients: Sequence[ClientShare], width: float) -> None:
    """Level where each name has room, else upright."""
    shown, room = ticks(len(clients)), int((width - MARGIN_WIDTH) / LETTER / max(len(clients), 1))
    is_level = all(len(clients[client].name) <= LONGEST_LEVEL_NAME for client in shown)
    if not is_level and room < LEAST_ROOM:
        shown = ticks(len(clients), MOST_UPRIGHT if len(clients) <= MOST_CLIENTS else MOST_TICKS)
        axes.tick_params(axis="x", labelrotation=90)
    names = {client: clients[client].name for client in shown}
    _name(axes.xaxis, shown, names, room if LEAST_ROOM <= room < LONGEST_NAME else LONGEST_NAME)


def _name(axis: Axis, shown: range, names: Mapping[int, str] | Sequence[str], longest: int = LONGEST_NAME) -> None:
    """Ticks with names as they are: no part of one is taken for a formula."""
    axis.set_ticks(shown, [shorten(one_line(names[place]), longest) for place in shown], parse_math=False)


def full_diameter(figure: Figure, axes: Axes, counts: Counts) -> float:
    """The diameter in points of a bubble that fills a cell, or a cell of the largest size that bubbles need."""
    box = axes.get_window_extent()
    cell = min(box.width / max(counts.shape[0], 1), box.height / max(counts.shape[1], 1))
    return float(np.clip(FILLED * cell * 72 / figure.dpi, *DIAMETERS))


def full_count(counts: npt.NDArray[Any]) -> float:
    """The count that fills a cell: nearly the largest, since a few giants would make specks of all others."""
    held = counts[counts > 0]
    if not held.size:
        return 1.0
    return max(float(np.quantile(held, FULL_QUANTILE)), float(held.max()) / LARGEST_OVER_FULL)


def ticks(number: int, most: int = MOST_TICKS) -> range:
    """Round positions, few enough to be read."""
    steps = (base * 10**power for power in range(7) for base in (1, 2, 5))
    return range(0, number, next(step for step in steps if number <= most * step))


def sample_counts(largest: int) -> list[int]:
    """Up to three round numbers for the legend, from the largest one down."""
    magnitude = 10 ** (len(str(largest)) - 1)
    top = largest // magnitude * magnitude
    return sorted({top, max(1, top // 4), max(1, top // 20)}, reverse=True)


def draw_partitions(path: Path, reports: Mapping[str, PartitionReport]) -> None:
    """Write several partitions side by side, without their sizes, as figure 2 of FedDF does."""
    save(partitions_figure(reports), path)


def partitions_figure(reports: Mapping[str, PartitionReport]) -> Figure:
    """The picture of :func:`draw_partitions`; bubbles are comparable between partitions."""
    columns = {title: Columns.of(report, MOST_CLIENTS) for title, report in reports.items()}
    largest = max((float(own.counts.max(initial=1)) for own in columns.values()), default=1)
    figure, squares = panels(columns)
    for axes, own in squares:
        clean(axes)
        count = own.counts
        held = np.nonzero(count)
        areas = (72 * INSIDE * SIDE * FILLED / max(*count.shape, 1)) ** 2 * count[held] / largest
        axes.scatter(own.centres[held[0]], held[1], s=areas, color=COLOURS[0], linewidth=0, alpha=0.8)
        axes.set_xlim(-0.5, int(own.edges[-1]) - 0.5)
        axes.set_ylim(-0.5, max(count.shape[1], 1) - 0.5)
        axes.set_xlabel("Client", fontsize=SMALL_SIZE, color=INK)
        axes.set_ylabel("Class", fontsize=SMALL_SIZE, color=INK)
        axes.locator_params(integer=True, nbins=6)
    return figure
