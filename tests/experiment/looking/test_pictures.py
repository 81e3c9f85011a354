"""Pictures of runs that are there: of which runs, over what, and what cannot be drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from benchmarks.report.runs import Made, write_run

import fedfuse
from fedfuse.core.errors import ConfigError
from fedfuse.experiment.looking.comparison import Comparison
from fedfuse.experiment.looking.pictures import size_of

TEXT = "{http://www.w3.org/2000/svg}text"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = tmp_path_factory.mktemp("study")
    for seed in range(2):
        for method in ("fedavg", "feddf"):
            write_run(folder / f"{method}{seed}", Made(method, seed, rounds=60, models=("mlp", "wide")))
    return fedfuse.load_runs(folder)


def words(path: Path) -> list[str]:
    return [node.text or "" for node in ElementTree.parse(path).iter(TEXT)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["Round", "Test accuracy (%)", "study on blobs: test accuracy", "target 70 %"]),
        ({"x": "bytes"}, ["Sent and received (kB)"]),
        ({"x": "seconds", "y": "loss", "band": "std"}, ["Time (s)", "Test loss", "shade and ±: std"]),
        ({"y": "before_fusion"}, ["Accuracy before fusion (%)"]),
        ({"title": "mine $x$", "size": "column"}, ["mine $x$"]),
    ],
    ids=str,
)
def test_axes_titles_and_legend_say_what_is_drawn(
    study: Comparison, tmp_path: Path, options: dict[str, Any], expected: list[str]
) -> None:
    shown = words(study.plot(tmp_path / "picture.svg", **options))
    for text in expected:
        assert text in shown
    assert "FedDF mlp" in shown


def test_only_one_model_if_that_is_wanted(study: Comparison, tmp_path: Path) -> None:
    shown = words(study.plot(tmp_path / "picture.svg", model="wide"))
    assert {"FedAvg", "FedDF"} <= set(shown)
    assert not any("mlp" in word for word in shown)


def test_the_partition_of_a_run_with_the_names_of_its_classes(study: Comparison, tmp_path: Path) -> None:
    folder = study.runs[0].folder.path
    shown = words(fedfuse.load_runs(folder).plot(tmp_path / "partition.svg", picture="partition"))
    assert {"ant", "bee", "cat"} <= set(shown)
    assert any(word.startswith("blobs, seed 0, partition: dirichlet") for word in shown)


def test_an_unfinished_run_has_pictures(tmp_path: Path) -> None:
    write_run(tmp_path / "run", Made(rounds=3, planned=50))
    run = fedfuse.load_run(tmp_path / "run")
    run.plot(tmp_path / "curve.png")
    run.plot(tmp_path / "partition.pdf", picture="partition")
    assert (tmp_path / "curve.png").stat().st_size > 1000
    assert (tmp_path / "partition.pdf").stat().st_size > 1000


def test_what_a_model_takes_each_class_for(study: Comparison, tmp_path: Path) -> None:
    one = fedfuse.load_runs(study.lines[-1].runs[0].folder.path)
    shown = words(one.plot(tmp_path / "confusion.svg", picture="confusion", model="wide"))
    assert {"ant", "bee", "cat", "True class", "Answer"} <= set(shown)
    with pytest.raises(ConfigError, match="has the models mlp, wide; choose one"):
        one.plot(tmp_path / "other.svg", picture="confusion")
    with pytest.raises(ConfigError, match="unknown model 'wid' \\(did you mean 'wide'"):
        one.plot(tmp_path / "other.svg", picture="confusion", model="wid")
    with pytest.raises(ConfigError, match="x=, y= and band= are of curves; leave them away for the picture confusion"):
        one.plot(tmp_path / "other.svg", x="bytes", picture="confusion", model="wide")
    with pytest.raises(ConfigError, match="a partition is the same for every model; leave model= away"):
        one.plot(tmp_path / "other.svg", picture="partition", model="wide")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"x": "rouns"}, "unknown axis 'rouns' \\(did you mean 'rounds'"),
        ({"x": "simulated"}, "no run has a clock"),
        ({"y": "auroc"}, "unknown measure 'auroc'"),
        ({"band": "iqr"}, "unknown band 'iqr'"),
        ({"size": "huge"}, "size 'huge': write wide, column, page, or inches such as 3.4x2.5"),
        ({"size": "900x2"}, "a side has 1 to 40 inches"),
        ({"picture": "partition"}, "is of one run, and here are 4; give its folder"),
        ({"picture": "pie"}, "unknown picture 'pie'"),
        ({"model": "large"}, "unknown model 'large'"),
    ],
    ids=str,
)
def test_what_cannot_be_drawn_is_refused_in_one_sentence_and_leaves_no_file(
    study: Comparison, tmp_path: Path, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        study.plot(tmp_path / "picture.png", **options)
    assert not list(tmp_path.iterdir())


def test_sizes() -> None:
    assert size_of("3.4x2.5") == (3.4, 2.5)
    assert size_of((2, 3)) == (2, 3)
    assert size_of("column")[0] < 3.6
