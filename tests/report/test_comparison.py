from __future__ import annotations

from pathlib import Path
from statistics import stdev

import numpy as np
import pytest
from scipy import stats

from fedfuse.core.views import BANDS, Band
from fedfuse.report.comparison import Spread, comparison_figure, draw_comparison
from fedfuse.report.style import Scale, line_style
from tests.report.samples import check_picture, legend_labels, line_data

SEEDS = [[(1, 0.2), (2, 0.5)], [(1, 0.4), (2, 0.6)], [(1, 0.3), (2, 0.7)]]


def test_line_is_the_mean_and_band_is_the_range_of_the_seeds() -> None:
    figure = comparison_figure({"feddf": SEEDS}, None, "title")
    assert line_data(figure) == {"feddf": [(1, pytest.approx(30)), (2, pytest.approx(60))]}
    (band,) = figure.axes[0].collections
    corners = np.unique(np.round(band.get_paths()[0].vertices, 6), axis=0).tolist()
    assert corners == [[1, 20], [1, 40], [2, 50], [2, 70]]


def test_legend_states_mean_and_deviation_of_the_last_accuracy() -> None:
    figure = comparison_figure({"feddf": SEEDS, "fedavg": SEEDS[:1]}, None, "title")
    deviation = 100 * stdev([0.5, 0.6, 0.7])
    *methods, shade = legend_labels(figure)
    assert methods == [f"feddf\n60.0 ± {deviation:.1f} % (3 seeds)", "fedavg\n50.0 %"]
    assert " ".join(shade.split()) == "shade: lowest to highest seed; ±: std over seeds"
    assert len(legend_labels(comparison_figure({"fedavg": SEEDS[:1]}, None, "title"))) == 1


@pytest.mark.parametrize("band", BANDS)
def test_the_band_is_what_the_legend_says(band: Band) -> None:
    figure = comparison_figure({"feddf": SEEDS}, None, "title", band=band)
    last, reach = [50, 60, 70], {"range": 10.0, "std": stdev([50, 60, 70]), "95": None, "none": 0.0}[band]
    if reach is None:
        reach = stats.t.ppf(0.975, 2) * stats.sem(last)
    if band == "none":
        assert not figure.axes[0].collections
        return
    (shade,) = figure.axes[0].collections
    corners = [y for x, y in shade.get_paths()[0].vertices if x == 2]
    assert (min(corners), max(corners)) == pytest.approx((60 - reach, 60 + reach))
    words = {"range": "lowest to highest seed", "std": "shade and ±: std", "95": "95 % interval of the mean"}
    assert words[band] in " ".join(legend_labels(figure)[-1].split())


def test_seeds_that_spent_differently_meet_round_by_round_at_the_mean_of_what_they_spent() -> None:
    seeds = [[(1, 100.0, 0.2), (2, 200.0, 0.4)], [(1, 300.0, 0.4), (2, 500.0, 0.6)]]
    figure = comparison_figure({"feddf": seeds}, None, "title", x=Scale("Sent (kB)", 1e-3))
    (line,) = figure.axes[0].lines
    assert np.asarray(line.get_xydata()).tolist() == [pytest.approx([0.2, 30]), pytest.approx([0.35, 50])]
    assert figure.axes[0].get_xlabel() == "Sent (kB)"


def test_the_order_of_seeds_changes_nothing() -> None:
    assert Spread.over(SEEDS).mean == Spread.over(SEEDS[::-1]).mean
    assert Spread.over(SEEDS).describe() == Spread.over(SEEDS[::-1]).describe()


def test_only_rounds_that_all_seeds_measured_count() -> None:
    spread = Spread.over([[(1, 0.2), (2, 0.5), (3, 0.9)], [(1, 0.4), (3, 0.7)], []])
    assert spread.seeds == 2
    assert [number for number, _ in spread.mean] == [1, 3]
    assert Spread.over([[(1, 0.2)], [(2, 0.5)]]).describe() == "no common round"


@pytest.mark.parametrize("labels", [0, 1, 14])
def test_any_number_of_labels(tmp_path: Path, labels: int) -> None:
    path = tmp_path / "comparison.png"
    draw_comparison(path, {f"method{i}/prototype": SEEDS for i in range(labels)}, 0.5, "A long title " * 12)
    check_picture(path)


def test_a_label_without_data_is_named_and_not_drawn(tmp_path: Path) -> None:
    draw_comparison(tmp_path / "comparison.png", {"feddf": SEEDS, "stopped": [[]]}, None, "title")
    figure = comparison_figure({"feddf": SEEDS, "stopped": [[]]}, None, "title")
    assert legend_labels(figure)[1] == "stopped\nno common round"
    assert line_data(figure)["stopped"] == []


def test_thirty_lines_look_different() -> None:
    figure = comparison_figure({str(i): SEEDS for i in range(30)}, None, "title")
    assert len({(line.get_color(), line.get_marker()) for line in figure.axes[0].lines}) == 30


def test_lines_of_one_colour_are_dashed_differently() -> None:
    looks = [line_style(index) for index in range(18)]
    assert len({(look["color"], str(look["linestyle"])) for look in looks}) == 18
