from __future__ import annotations

import math
from pathlib import Path

import pytest

from fedfuse.federation.state import PrototypeRecord
from fedfuse.report.curves import curves_figure, draw_curves
from fedfuse.report.limits import accuracy_limits
from fedfuse.report.palette import shorten
from tests.report.samples import check_picture, history, legend_labels, line_data, record


def test_lines_are_the_history_in_percent() -> None:
    rounds = history(5)
    lines = line_data(curves_figure(rounds, 0.8))
    for name in ("small", "big"):
        prototypes = [(r.round, r.prototypes[name]) for r in rounds]
        assert lines[f"{name}, after fusion"] == [(n, pytest.approx(100 * (p.accuracy or 0))) for n, p in prototypes]
        assert lines[f"{name}, before fusion"] == [
            (n, pytest.approx(100 * (p.accuracy_before_fusion or 0))) for n, p in prototypes
        ]
    assert lines["ensemble"] == [(r.round, pytest.approx(100 * (r.ensemble_accuracy or 0))) for r in rounds]


def test_before_fusion_is_dashed_in_the_colour_of_its_prototype() -> None:
    lines = {line.get_label(): line for line in curves_figure(history(5), None).axes[0].lines}
    after, before = lines["big, after fusion"], lines["big, before fusion"]
    assert before.get_color() == after.get_color() != lines["small, after fusion"].get_color()
    assert before.is_dashed()
    assert not after.is_dashed()


def test_unevaluated_rounds_are_skipped() -> None:
    rounds = [
        record(number, {"mlp": PrototypeRecord(number / 10, 1.0, number / 10) if number % 2 else PrototypeRecord()})
        for number in range(1, 6)
    ]
    lines = line_data(curves_figure(rounds, None))
    assert lines == {"mlp, after fusion": [(n, pytest.approx(10.0 * n)) for n in (1, 3, 5)]}


def test_without_a_change_there_is_no_curve_before_fusion() -> None:
    figure = curves_figure([record(1, {"mlp": PrototypeRecord(0.5, 1.0, 0.5)})], None)
    assert legend_labels(figure) == ["mlp, last 50.0 %"]


def test_values_that_are_not_finite_are_not_drawn() -> None:
    rounds = [*history(2, ("mlp",)), record(3, {"mlp": PrototypeRecord(math.nan, math.nan, math.nan)}, math.nan)]
    drawn = line_data(curves_figure(rounds, None))
    assert all(math.isfinite(value) for points in drawn.values() for _, value in points)
    assert drawn["mlp, after fusion"][-1][0] == 2


def test_the_target_is_drawn_and_labelled() -> None:
    axes = curves_figure(history(3), 0.85).axes[0]
    assert "target 85 %" in [text.get_text() for text in axes.texts]
    low, high = axes.get_ylim()
    assert low < 85 < high


def test_names_are_shown_as_they_are() -> None:
    names = ("_hidden", "$x$", "n" * 80)
    labels = legend_labels(curves_figure(history(2, names), None))
    assert labels[0].startswith("_hidden, ")
    assert labels[1].startswith("$x$, ")
    assert labels[2].startswith(shorten(names[2]))
    assert len(shorten(names[2])) == 28


@pytest.mark.parametrize("rounds", [0, 1, 2, 300])
def test_any_number_of_rounds(tmp_path: Path, rounds: int) -> None:
    draw_curves(tmp_path / "accuracy.png", history(rounds), 0.8)
    check_picture(tmp_path / "accuracy.png")


def test_ticks_are_whole_rounds() -> None:
    for rounds in (1, 2, 3, 40):
        axes = curves_figure(history(rounds), None).axes[0]
        assert all(float(tick).is_integer() for tick in axes.get_xticks())


@pytest.mark.parametrize(("lowest", "highest"), [(0, 0), (100, 100), (50, 50.1), (0, 100), (30, 90)])
def test_limits_hold_the_data_and_never_magnify_noise(lowest: float, highest: float) -> None:
    low, high = accuracy_limits(lowest, highest)
    assert low <= lowest <= highest <= high
    assert high - low > 2.5
    assert low >= -2
    assert high <= 102
