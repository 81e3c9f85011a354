"""Pictures of what models say: boundaries, mixtures, confidence, features, trends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from fedfuse.report.palette import COLOURS
from fedfuse_papers.drawing.boundaries import PALE, boundaries_figure, colours_of, draw_boundaries, grid
from fedfuse_papers.drawing.confidence import confidence_figure, draw_confidence
from fedfuse_papers.drawing.scatter import draw_latent, draw_scatter, latent_figure
from fedfuse_papers.drawing.simplex import CORNERS, draw_simplex, mixtures, simplex_figure
from fedfuse_papers.drawing.trend import draw_trend, trend_figure
from tests.report.samples import check_picture, legend_labels

RANDOM = np.random.default_rng(0)
POINTS, LABELS = RANDOM.normal(size=(20, 2)), RANDOM.integers(0, 3, size=20)


def test_a_certain_prediction_has_its_class_s_colour_and_others_are_mixed() -> None:
    certain = colours_of(np.eye(3))
    for label in range(3):
        assert certain[label] == pytest.approx(1 - PALE * (1 - np.array(to_rgb(COLOURS[label]))))
    assert colours_of(np.full((1, 3), 1 / 3))[0] == pytest.approx(certain.mean(axis=0))


def test_grid_covers_the_points_row_by_row_from_below() -> None:
    positions, (left, right, low, high) = grid(POINTS)
    assert positions[0].tolist() == [left, low]
    assert positions[-1].tolist() == [right, high]
    assert positions[1][1] == low
    assert ([left, low] < POINTS).all()
    assert ([right, high] > POINTS).all()


def test_boundaries_have_a_square_per_model(tmp_path: Path) -> None:
    positions, extent = grid(POINTS)
    models = {f"model {i}": RANDOM.dirichlet([1, 1, 1], size=len(positions)) for i in range(6)}
    draw_boundaries(tmp_path / "picture.png", models, POINTS, LABELS, extent)
    check_picture(tmp_path / "picture.png", 400, 300)
    figure = boundaries_figure(models, POINTS, LABELS, extent)
    assert [axes.get_title() for axes in figure.axes] == list(models)


def test_mixtures_are_all_weights_in_equal_steps() -> None:
    weights = mixtures(4)
    assert len(weights) == 15
    assert weights.sum(axis=1) == pytest.approx(1)
    assert weights.min() >= 0
    assert len(np.unique(weights, axis=0)) == 15


def test_the_star_is_at_the_best_mixture(tmp_path: Path) -> None:
    weights = mixtures(4)
    accuracy = [float(0.5 + 0.3 * row[1]) for row in weights]
    figure = simplex_figure(weights, accuracy, ["a", "b", "c"], [1 / 3] * 3)
    star, average = figure.axes[0].lines
    assert star.get_xydata()[0] == pytest.approx(CORNERS[1])
    assert average.get_xydata()[0] == pytest.approx(CORNERS.mean(axis=0))
    assert star.get_label() == "best, 80.0 %"
    draw_simplex(tmp_path / "picture.png", weights, accuracy, ["a", "b", "c"], [1 / 3] * 3)
    check_picture(tmp_path / "picture.png", 400, 300)


def test_confidence_is_in_percent_of_all_predictions(tmp_path: Path) -> None:
    answers = (np.array([0.2, 0.62, 0.61, 0.99]), np.array([False, True, False, True]))
    (axes,) = confidence_figure({"clients": answers}).axes
    tops = [patch.get_y() + patch.get_height() for patch in axes.patches]
    assert sum(patch.get_height() for patch in axes.patches) == pytest.approx(100)
    assert max(tops) == pytest.approx(50)
    draw_confidence(tmp_path / "picture.png", {"clients": answers, "samples": answers})
    check_picture(tmp_path / "picture.png", 400, 300)


def test_latent_shows_codes_and_errors(tmp_path: Path) -> None:
    losses = {"own": {0: 0.5, 2: 0.25}, "others": {1: 1.0}}
    _, right = latent_figure((POINTS, LABELS), losses).axes
    heights = [patch.get_height() for patch in right.patches]
    assert np.nan_to_num(heights, nan=-1).tolist() == [0.5, -1, 0.25, -1, 1, -1]
    draw_latent(tmp_path / "latent.png", (POINTS, LABELS), losses)
    check_picture(tmp_path / "latent.png", 400, 300)
    draw_scatter(tmp_path / "scatter.png", {"one": (POINTS, LABELS), "other": (POINTS, LABELS + 30)})
    check_picture(tmp_path / "scatter.png", 400, 300)


def test_trend_is_the_mean_of_the_seeds_at_each_label(tmp_path: Path) -> None:
    lines = {"FedAvg": {"1": [70.0, 72.0], "0.1": [60.0]}, "FedDF": {"0.1": [65.0], "0.01": []}}
    figure = trend_figure(lines, "alpha", "A title")
    (axes,) = figure.axes
    assert [line.get_xydata().tolist() for line in axes.lines] == [[[0, 71], [1, 60]], [[1, 65]]]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "0.1", "0.01"]
    assert legend_labels(figure) == ["FedAvg", "FedDF"]
    draw_trend(tmp_path / "trend.png", lines, "alpha", "A title")
    check_picture(tmp_path / "trend.png", 400, 300)
