"""The picture of the metrics shows every value that was measured, and nothing else."""

from __future__ import annotations

from pathlib import Path

from fedfuse.federation.state import PrototypeRecord
from fedfuse.report import draw_run
from fedfuse.report.metric_curves import metrics_figure
from tests.report.samples import check_picture, partition, record

HISTORY = [
    record(
        number,
        {
            name: PrototypeRecord(0.5, metrics={"macro_f1": number / 10 + index, "by_class.a": 0.3, "by_class.b": None})
            for index, name in enumerate(("mlp", "_$wide"))
        },
    )
    for number in (1, 2, 3)
]


def test_a_panel_per_metric_and_a_line_per_model_and_value() -> None:
    figure = metrics_figure([*HISTORY, record(4, {"mlp": PrototypeRecord()})])
    f1, by_class = figure.axes
    assert [axes.get_title() for axes in figure.axes] == ["macro_f1", "by_class"]
    lines = [list(zip(line.get_xdata(), line.get_ydata(), strict=True)) for line in f1.lines]
    assert lines == [[(n, n / 10 + index) for n in (1, 2, 3)] for index in (0, 1)]
    assert sorted(len(line.get_xdata()) for line in by_class.lines) == [0, 0, 3, 3]


def test_lines_of_a_metric_of_several_values_say_which_they_are() -> None:
    values = {"by_class.ant": 0.3, "by_class.$bee$": 0.3001}
    figure = metrics_figure([record(1, {"mlp": PrototypeRecord(0.5, metrics={"macro_f1": 0.5, **values})})], "whose")
    one, several = figure.axes
    assert [text.get_text() for text in one.texts] == []
    assert [text.get_text() for text in several.texts] == ["ant", "$bee$"]
    assert several.texts[1].xyann[1] - several.texts[0].xyann[1] >= 0.04
    assert figure.get_suptitle() == "whose"


def test_a_run_with_metrics_has_one_picture_more(tmp_path: Path) -> None:
    paths = draw_run(tmp_path, HISTORY, partition(5, 4), None)
    assert [path.name for path in paths] == ["accuracy.png", "partition.png", "metrics.png"]
    check_picture(paths[-1], width=1000, height=500)
