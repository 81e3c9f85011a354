"""Accuracy of every mixture of three models, over the triangle that they span (FedBE, figure 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from fedfuse.report.saving import save
from fedfuse.report.style import INK, SMALL_SIZE, TEXT_SIZE, new_figure, set_title

Numbers = npt.NDArray[np.float64]
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(3) / 2]])


def mixtures(steps: int) -> Numbers:
    """All weights of three models in multiples of 1 / ``steps``; each row sums to one."""
    weights = [(i, j, steps - i - j) for i in range(steps + 1) for j in range(steps + 1 - i)]
    return np.array(weights) / steps


def draw_simplex(
    path: Path, weights: Numbers, accuracy: Sequence[float], names: Sequence[str], average: Sequence[float]
) -> None:
    """Write the triangle; ``average`` are the weights of the average that FedAvg takes."""
    save(simplex_figure(weights, accuracy, names, average), path)


def simplex_figure(
    weights: Numbers, accuracy: Sequence[float], names: Sequence[str], average: Sequence[float]
) -> Figure:
    """The picture of :func:`draw_simplex`, with a star at the best mixture and a cross at the average."""
    percents = 100 * np.asarray(accuracy)
    places = weights @ CORNERS
    best = int(percents.argmax())
    figure = new_figure(6.2, 4.8)
    axes = figure.add_subplot()
    filled = axes.tricontourf(places[:, 0], places[:, 1], percents, levels=14, cmap="viridis")
    bar = figure.colorbar(filled, ax=axes, shrink=0.85)
    bar.set_label("Test accuracy (%)", fontsize=TEXT_SIZE, color=INK)
    bar.ax.tick_params(labelsize=SMALL_SIZE)
    middle = np.asarray(average) @ CORNERS
    for (x, y), marker, size, label in (
        (places[best], "*", 17, f"best, {percents[best]:.1f} %"),
        (middle, "X", 9, "average"),
    ):
        axes.plot(x, y, marker, markersize=size, markeredgecolor=INK, color="white", label=label)
    for corner, name, side in zip(CORNERS, names, (-1, -1, 1), strict=True):
        axes.annotate(name, corner, (0, 9 * side), textcoords="offset points", ha="center", va="center",
                      fontsize=TEXT_SIZE, color=INK)  # fmt: skip
    axes.legend(fontsize=SMALL_SIZE, frameon=False, loc="upper left", labelcolor=INK, markerscale=0.7)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_ylim(-0.08, 1.0)
    set_title(axes, "Accuracy of mixtures of three clients' models")
    return figure
