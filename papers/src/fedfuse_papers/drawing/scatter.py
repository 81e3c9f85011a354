"""Points in two dimensions, coloured by class: features (FedGKD, figure 2), codes of autoencoders (thesis, 3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedfuse.report.panels import frame, panels
from fedfuse.report.saving import save
from fedfuse.report.style import INK, SMALL_SIZE, TEXT_SIZE, clean

Numbers = npt.NDArray[np.float64]
Labelled = tuple[Numbers, npt.NDArray[np.int64]]
"""Points (n x 2) and their classes."""
# Ten colours that differ for all kinds of colour vision (Petroff, 2021), since digits have ten classes.
TEN = ("#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6", "#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd")
MOST_IN_LEGEND = 20


def draw_scatter(path: Path, models: Mapping[str, Labelled]) -> None:
    """Write one square per model."""
    save(scatter_figure(models), path)


def scatter_figure(models: Mapping[str, Labelled]) -> Figure:
    """The picture of :func:`draw_scatter`."""
    figure, squares = panels(models, side=3.2)
    seen: set[int] = set()
    for axes, (points, labels) in squares:
        _draw(axes, points, labels)
        seen.update(int(label) for label in labels)
    _legend(figure, sorted(seen))
    return figure


def draw_latent(path: Path, codes: Labelled, losses: Mapping[str, Mapping[int, float]]) -> None:
    """Write an autoencoder's codes, and its mean reconstruction error by class for each set of inputs."""
    save(latent_figure(codes, losses), path)


def latent_figure(codes: Labelled, losses: Mapping[str, Mapping[int, float]]) -> Figure:
    """The picture of :func:`draw_latent`: codes on the left, errors on the right."""
    figure, squares = panels({"Codes of test inputs": 0, "Reconstruction error by class": 1}, side=4.2)
    (left, _), (right, _) = squares
    _draw(left, *codes)
    clean(right)
    right.grid(False, axis="x")
    classes = sorted({label for of_set in losses.values() for label in of_set})
    width = 0.8 / max(len(losses), 1)
    for position, (name, by_class) in enumerate(losses.items()):
        places = [index + (position - (len(losses) - 1) / 2) * width for index in range(len(classes))]
        heights = [by_class.get(label, np.nan) for label in classes]
        right.bar(places, heights, width, color=TEN[2 * position], label=name, linewidth=0)
    right.set_xticks(range(len(classes)), [str(label) for label in classes])
    right.set_xlabel("Class", fontsize=TEXT_SIZE, color=INK)
    right.set_ylabel("Mean squared error", fontsize=TEXT_SIZE, color=INK)
    right.set_ylim(0, 1.2 * right.get_ylim()[1])
    right.legend(fontsize=SMALL_SIZE, frameon=False, labelcolor=INK, loc="upper left")
    _legend(figure, sorted({int(label) for label in codes[1]}))
    return figure


def _draw(axes: Axes, points: Numbers, labels: npt.NDArray[np.int64]) -> None:
    colours = [TEN[label % len(TEN)] for label in labels]
    axes.scatter(points[:, 0], points[:, 1], s=6, c=colours, linewidths=0, alpha=0.8)
    frame(axes)


def _legend(figure: Figure, classes: list[int]) -> None:
    if not classes or len(classes) > MOST_IN_LEGEND:
        return
    marks = [Line2D([], [], marker="o", linestyle="", color=TEN[label % len(TEN)]) for label in classes]
    figure.legend(
        marks, [str(label) for label in classes], loc="outside right center", title="Class",
        title_fontsize=SMALL_SIZE, fontsize=SMALL_SIZE, frameon=False, labelcolor=INK,
    )  # fmt: skip
