"""A partition among many clients: neighbours share a column, so that a picture costs the same for any number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from fedfuse.data import PartitionReport
from fedfuse.data.partition.report import borders
from fedfuse.report.palette import COLOURS
from fedfuse.report.style import GRAY, INK, SMALL_SIZE

Numbers = npt.NDArray[np.float64]

MOST_COLUMNS = 500
FAINT = "#D0D0D0"
SHADES = LinearSegmentedColormap.from_list("shades", ["#FFFFFF", COLOURS[0]])


@dataclass(frozen=True)
class Columns:
    """Clients in groups of neighbours: where groups begin and end, and what their clients have on average."""

    edges: npt.NDArray[np.int64]
    sizes: Numbers
    largest: npt.NDArray[np.int64]
    counts: Numbers
    """Examples of each class, a row for each group."""

    @staticmethod
    def of(report: PartitionReport, most: int = MOST_COLUMNS) -> Columns:
        edges = borders(len(report.assignment), most)
        together, sizes = np.diff(edges), report.sizes
        return Columns(
            edges,
            np.add.reduceat(sizes, edges[:-1]) / together,
            np.maximum.reduceat(sizes, edges[:-1]),
            report.counts(most) / together[:, None],
        )

    @property
    def has_several(self) -> bool:
        """Whether any column stands for more than one client."""
        return bool(self.edges[-1] > len(self.sizes))

    @property
    def centres(self) -> Numbers:
        """Where the columns stand on an axis of clients."""
        return (self.edges[:-1] + self.edges[1:] - 1) / 2


def draw_sizes(axes: Axes, columns: Columns) -> None:
    """One filled step line, and behind it a fainter one of the largest client in each column."""
    edges = columns.edges - 0.5
    if columns.has_several:
        axes.stairs(columns.largest, edges, fill=True, color=FAINT)
        axes.set_ylabel("Size (mean\nand largest)", fontsize=SMALL_SIZE, color=INK)
    axes.stairs(columns.sizes, edges, fill=True, color=GRAY)
    axes.set_ylim(0, 1.1 * max(int(columns.largest.max(initial=0)), 1))


def draw_classes(figure: Figure, axes: Axes, columns: Columns, full: float) -> None:
    """One image, in which ``full`` examples of a class are the darkest shade."""
    clients, classes = int(columns.edges[-1]), columns.counts.shape[1]
    image = axes.pcolormesh(
        columns.edges - 0.5, np.arange(classes + 1) - 0.5, columns.counts.T, cmap=SHADES, vmin=0, vmax=full
    )
    axes.set_xlim(-0.5, clients - 0.5)
    above = "max" if columns.counts.max(initial=0) > full else "neither"
    bar = figure.colorbar(image, ax=axes, extend=above, fraction=0.04, pad=0.02)
    bar.ax.tick_params(labelsize=SMALL_SIZE, color=GRAY, labelcolor=INK)
    bar.outline.set_visible(False)
    bar.set_label("Examples, mean of neighbours" if columns.has_several else "Examples", fontsize=SMALL_SIZE, color=INK)
