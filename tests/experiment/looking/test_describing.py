"""Runs in words: everything is there, in 80 columns, and for terminals that know ASCII only."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.report.runs import Made, write_run

import fedfuse
from fedfuse.cli.letters import INSTEAD
from fedfuse.experiment.looking.one_run import class_sheet, mistaken
from fedfuse.experiment.looking.several import described
from fedfuse.experiment.run import Experiment
from fedfuse.federation.confusion import Confusion
from fedfuse.report.blocks import text_of
from tests.helpers import tiny_config

TABLE = Confusion((10, 4, 0), (8, 4, 0), ((8, 2, 0), (0, 4, 0), (0, 0, 0)))


@pytest.mark.usefixtures("without_pictures")
def test_a_real_run_in_full(tmp_path: Path) -> None:
    result = Experiment(tiny_config("feddf", name="mine", evaluation={"metrics": ["macro_f1"]})).run(tmp_path / "run")
    text = result.describe()
    last = result.accuracy["mlp"]
    assert f"{100 * last:.2f} %".replace(".00 %", " %") in text
    for words in (
        "mine, feddf: test accuracy",
        "macro_f1",
        "test accuracy of mlp",
        "classes, mlp",
        "run      mine feddf seed 0, finished, 2 rounds",
        result.partition.in_words(),
        "6 updates, 6 counted",
        f"by fedfuse {fedfuse.__version__}",
        f"again    fedfuse run {tmp_path / 'run'} --out {tmp_path / 'run'}-again",
    ):
        assert words in " ".join(text.split()) or words in text
    wide = [line for line in text.splitlines() if len(line) > 80]
    assert all("again" in line or str(tmp_path) in line for line in wide)


def test_the_command_that_is_shown_repeats_the_run(tmp_path: Path) -> None:
    result = Experiment(tiny_config("fedavg", evaluation={"pictures": False})).run(tmp_path / "a run")
    (line,) = [line for line in result.describe(400).splitlines() if line.startswith("again")]
    assert line == f"again    fedfuse run '{tmp_path / 'a run'}' --out '{tmp_path / 'a run'}-again'"
    again = fedfuse.run(tmp_path / "a run", out=tmp_path / "a run-again")
    assert again.summary["prototypes"] == result.summary["prototypes"]


def test_classes_with_their_names_and_what_they_are_taken_for() -> None:
    sheet = class_sheet("mlp", TABLE, ["ant", "bee\n", "cat"])
    assert [(names[0], *numbers) for names, numbers in sheet.rows] == [
        ("ant", "10", "80 %", "bee  (2)"),
        ("bee ", "4", "100 %", "-"),
    ]
    assert mistaken(TABLE, 0, ["a", "b", "c"]) == "b (2)"


def test_of_many_classes_the_worst_are_shown() -> None:
    many = Confusion((2,) * 50, tuple(place % 3 for place in range(50)), None)
    sheet = class_sheet("mlp", many, [f"class {place}" for place in range(50)])
    assert sheet.title == "the worst 20 of 50 classes, mlp"
    assert {numbers[1] for _, numbers in sheet.rows} == {"0 %", "50 %"}
    assert len(sheet.rows) == 20


def test_who_was_refused_and_why(tmp_path: Path) -> None:
    write_run(tmp_path / "run", Made(rounds=100))
    text = fedfuse.load_runs(tmp_path).describe()
    assert "refused  2 times: weights are not finite" in text
    assert "800 updates, 798 counted" in text


def test_several_runs_say_what_differs_and_what_to_know(tmp_path: Path) -> None:
    write_run(tmp_path / "a", Made())
    write_run(tmp_path / "b", Made(sections={"training": {"epochs": 5}}))
    write_run(tmp_path / "c", Made("feddf", rounds=2, planned=5))
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "config.yaml").write_text("x: 1")
    (tmp_path / "d" / "events.jsonl").write_text("")
    text = fedfuse.load_runs(tmp_path).describe()
    assert " training.epochs\n   1: FedAvg training.epochs=1, FedDF training.epochs=1\n   5: FedAvg" in text
    note = "note study feddf seed 0 is not finished (round 2 of 5): its numbers are those so far"
    assert note in " ".join(text.split())
    assert "damaged  " in text
    assert "last accuracy against fedavg training.epochs=1, seed by seed, in percentage points" in text


def test_every_sign_of_ours_has_a_spelling_in_ascii(tmp_path: Path) -> None:
    for seed in range(2):
        write_run(tmp_path / f"a{seed}", Made(seed=seed, rounds=12))
    for places in ((tmp_path,), (tmp_path / "a0",)):
        text = text_of(described(fedfuse.load_runs(*places)), ascii_only=True)
        assert {letter for letter in text if not letter.isascii()} <= INSTEAD.keys()


def test_a_run_from_python_values_says_how_it_is_repeated(tmp_path: Path) -> None:
    inputs = [[float(number % 7), float(number % 3)] for number in range(60)]
    setup = {"models": {"net": {"arch": "mlp"}}, "partition": {"kind": "iid", "clients": 2}}
    labels = [number % 3 for number in range(60)]
    short = {"federation": {"rounds": 1}, "evaluation": {"pictures": False}}
    result = fedfuse.run(setup, data=(inputs, labels), out=tmp_path, **short)
    assert "its data came from Python: fedfuse.run(" in result.describe(400)
