"""How sure models are: histograms of the largest probability, of right and of wrong answers (FedBE, figure 8)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from fedfuse.report.palette import COLOURS
from fedfuse.report.panels import panels
from fedfuse.report.saving import save
from fedfuse.report.style import INK, SMALL_SIZE, TEXT_SIZE, clean

BINS = np.linspace(0, 1, 21).tolist()
Answers = tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]
"""The largest probability of every prediction, and whether it was right."""


def draw_confidence(path: Path, models: Mapping[str, Answers]) -> None:
    """Write one histogram per kind of model."""
    save(confidence_figure(models), path)


def confidence_figure(models: Mapping[str, Answers]) -> Figure:
    """The picture of :func:`draw_confidence`."""
    figure, squares = panels(models, side=3.4)
    for axes, (sureness, right) in squares:
        clean(axes)
        weights = np.full(len(sureness), 100 / max(len(sureness), 1))
        axes.hist(
            [sureness[right], sureness[~right]], bins=BINS, weights=[weights[right], weights[~right]], stacked=True,
            color=[COLOURS[0], COLOURS[1]], label=["right", "wrong"], linewidth=0,
        )  # fmt: skip
        axes.set_xlabel("Largest probability", fontsize=TEXT_SIZE, color=INK)
        axes.set_ylabel("Predictions (%)", fontsize=TEXT_SIZE, color=INK)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1.15 * axes.get_ylim()[1])
        axes.legend(fontsize=SMALL_SIZE, frameon=False, loc="upper left", labelcolor=INK, ncols=2)
    return figure
