"""What classifiers say about the plane: the mix of the classes' colours by their probabilities (FedDF, figure 1)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from fedfuse.report.palette import COLOURS
from fedfuse.report.panels import frame, panels
from fedfuse.report.saving import save

Numbers = npt.NDArray[np.float64]
Extent = tuple[float, float, float, float]
RESOLUTION = 120
MARGIN = 0.25
PALE = 0.75
"""How far a certain prediction is from white, so that points of the same class stand out."""


def grid(points: Numbers) -> tuple[Numbers, Extent]:
    """Positions over the points' range and some margin, row by row from below, and that range."""
    low, high = points.min(axis=0), points.max(axis=0)
    low, high = low - MARGIN * (high - low), high + MARGIN * (high - low)
    x, y = (np.linspace(low[axis], high[axis], RESOLUTION) for axis in (0, 1))
    positions = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    return positions, (float(low[0]), float(high[0]), float(low[1]), float(high[1]))


def colours_of(probabilities: Numbers) -> Numbers:
    """One colour per row: the classes' colours, mixed by their probabilities, on white."""
    palette = np.array([to_rgb(COLOURS[label % len(COLOURS)]) for label in range(probabilities.shape[1])])
    colours: Numbers = 1 - PALE * (1 - probabilities @ palette)
    return colours


def draw_boundaries(
    path: Path, models: Mapping[str, Numbers], points: Numbers, labels: npt.NDArray[np.int64], extent: Extent
) -> None:
    """Write one square per model; ``models`` holds probabilities at the positions of :func:`grid`."""
    save(boundaries_figure(models, points, labels, extent), path)


def boundaries_figure(
    models: Mapping[str, Numbers], points: Numbers, labels: npt.NDArray[np.int64], extent: Extent
) -> Figure:
    """The picture of :func:`draw_boundaries`."""
    figure, squares = panels(models)
    for axes, probabilities in squares:
        image = colours_of(probabilities).reshape(RESOLUTION, RESOLUTION, 3)
        axes.imshow(image, origin="lower", extent=extent, interpolation="bilinear", aspect="auto")
        colours = [COLOURS[label % len(COLOURS)] for label in labels]
        axes.scatter(points[:, 0], points[:, 1], s=7, c=colours, edgecolors="white", linewidths=0.4)
        axes.set_xlim(extent[:2])
        axes.set_ylim(extent[2:])
        frame(axes)
    return figure
