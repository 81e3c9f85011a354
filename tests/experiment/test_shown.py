"""What results look like at a prompt and in a notebook."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

import fedfuse
from fedfuse.experiment.result import RunResult
from fedfuse.experiment.run import Experiment
from fedfuse.federation.state import PrototypeRecord
from fedfuse.report.terminal import ASCII_BARS, BARS
from tests.experiment.test_python_values import TINY

pytestmark = pytest.mark.usefixtures("without_pictures")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return fedfuse.run(
        TINY, federation={"rounds": 3}, evaluation={"pictures": False}, out=tmp_path_factory.mktemp("run") / "<b>"
    )


def measuring(result: RunResult, *accuracies: float | None) -> RunResult:
    """The same run with other numbers."""
    first = result.history[0]
    history = [
        replace(first, round=number, prototypes={"mlp": PrototypeRecord(accuracy)})
        for number, accuracy in enumerate(accuracies, 1)
    ]
    return replace(result, history=tuple(history))


def drawn(html: str) -> list[ElementTree.Element]:
    found = ElementTree.fromstring(f"<div>{html.replace('<br>', '')}</div>").iter("path")
    return [path for path in found if "stroke" in path.attrib.get("class", "").split()]


def test_a_run_shows_its_curve_as_bars_and_as_a_line(result: RunResult) -> None:
    shown = measuring(result, 0.1, None, 0.4, 0.8)
    low, middle, high = BARS[0], BARS[3], BARS[-1]
    assert f"mlp {low}{middle}{high} " in repr(shown)
    assert len(drawn(shown._repr_html_())) == 1
    assert "<b>" not in shown._repr_html_()


@pytest.mark.parametrize("accuracies", [(), (None,), (0.5,), (float("nan"), 2.0, -1.0), (float("inf"), 0.5)])
def test_what_is_no_curve_is_not_drawn_as_one(result: RunResult, accuracies: tuple[float | None, ...]) -> None:
    shown = measuring(result, *accuracies)
    assert not set(repr(shown)) & set(BARS)
    assert len(drawn(shown._repr_html_())) == (0.5 in accuracies)


def test_bars_are_letters_where_there_are_no_others(result: RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    class Ascii:
        encoding = "ascii"

    monkeypatch.setattr(sys, "stdout", Ascii())
    shown = repr(measuring(result, 0.1, 0.8))
    assert f"mlp {ASCII_BARS[0]}{ASCII_BARS[-1]} " in shown
    assert shown.isascii()


def test_an_experiment_is_a_small_table() -> None:
    html = Experiment(TINY, seed=3)._repr_html_()
    for word in ("blobs", "fedavg", "mlp (mlp)", "<td>3</td>"):
        assert word in html


def test_a_partition_is_words_and_a_map(result: RunResult) -> None:
    partition = result.partition
    assert repr(partition) == f"PartitionReport({partition.partition['kind']}: {partition.in_words()})"
    html = partition._repr_html_()  # type: ignore[attr-defined]
    assert partition.in_words() in html
    cells = sum(count > 0 for client in partition.clients for count in client.class_counts)
    paths = [one for one in ElementTree.fromstring(html).iter("path") if one.attrib.get("class", "").startswith("f")]
    assert sum(path.attrib["d"].count("M") for path in paths) == cells


def test_a_comparison_shows_a_curve_for_each_row(tmp_path: Path) -> None:
    comparison = fedfuse.compare(TINY, ["fedavg", "fedprox"], [0, 1], federation={"rounds": 3}, out=tmp_path / "<i>")
    text = repr(comparison)
    assert sum(bool(set(line) & set(BARS)) for line in text.splitlines()) == 2
    assert max(map(len, text.split("folder")[0].splitlines())) <= 80
    html = comparison._repr_html_()
    lines, swatches = drawn(html), html.count('class="swatch')
    assert len(lines) - swatches == swatches == 2
    assert "<i>" not in html


def test_a_sweep_shows_its_trials_in_their_order(tmp_path: Path) -> None:
    found = fedfuse.sweep(TINY, {"training.batch_size": [4, 8]}, out=tmp_path)
    assert "in the order of trials" in repr(found)
    assert len(drawn(found._repr_html_())) == 1
