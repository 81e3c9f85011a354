"""What variants are called: short, different, and fit for the names of files."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fedfuse.experiment.config.changes import Change
from fedfuse.experiment.run import Experiment
from fedfuse.experiment.variants import words_of
from fedfuse.experiment.variants.words import LONGEST_WORDS, value_word
from fedfuse.methods import FILE_NAME


def changes(**values: Any) -> list[Change]:
    return [Change("", tuple(key.split("__")), value) for key, value in values.items()]


def folder(*assignments: str, **values: Any) -> str:
    return Experiment.load("digits", assignments, **values).default_folder.name


def test_keys_are_as_short_as_they_can_be() -> None:
    assert words_of(changes(partition__alpha=0.1)) == "alpha=0.1"
    assert words_of(changes(a__rate=1, b__rate=2)) == "a.rate=1-b.rate=2"
    assert words_of(changes(method__merge__kind="ties")) == "merge=ties"
    assert words_of(changes(rate=1, b__rate=2)) == "rate=1-b.rate=2"


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (0.1, "0.1"),
        (0.1000001, "0.1000001"),
        (1e-5, "1e-05"),
        (True, "true"),
        (None, "null"),
        ([64, 64], "64+64"),
        ([], "none"),
        ({"kind": "ties", "density": 0.2}, "ties+density.0.2"),
        ("own_file:Class", "own_file_Class"),
    ],
)
def test_values_in_a_few_letters(value: object, word: str) -> None:
    assert value_word(value) == word


@pytest.mark.parametrize("value", ["../../etc/passwd", "a/b\nc", "x" * 500, "<b>", {"kind": "a" * 99}, "", "é", "-"])
def test_no_value_makes_a_name_that_is_no_file_name(value: object) -> None:
    assert re.fullmatch(FILE_NAME, f"a={value_word(value)}")
    assert "/" not in value_word(value)


def test_a_folder_is_named_by_what_makes_it_another_experiment() -> None:
    assert folder() == "digits-feddf-seed0"
    assert folder("partition.alpha=0.5") == folder(partition={"alpha": 0.5}) == "digits-alpha=0.5-feddf-seed0"
    assert folder("partition.alpha=0.05") == folder(), "as the file says"
    assert folder("engine.workers=2", "evaluation.pictures=false") == folder(), "changes no bit"
    assert folder("method=fedprox", "seed=3") == "digits-fedprox-seed3"
    assert folder("method=fedprox", "method.local.strength=5") == "digits-strength=5-fedprox-seed0"
    assert folder("method=fedprox", "methods.fedprox.local.strength=5") == "digits-strength=5-fedprox-seed0"
    assert folder("methods.fedprox.local.strength=5") == folder(), "of a method that is not run"


def test_a_longer_run_has_the_folder_of_the_shorter_one() -> None:
    assert folder("federation.rounds=60") == folder()


def test_changes_of_changes_are_all_in_the_name() -> None:
    once = Experiment.load("digits", ["partition.alpha=0.5"])
    assert Experiment.load(once, ["training.epochs=1"]).default_folder.name == "digits-alpha=0.5-epochs=1-feddf-seed0"


def test_many_changes_are_told_apart_by_a_few_letters() -> None:
    many = ["partition.alpha=0.5", "training.epochs=1", "training.batch_size=7", "training.clip_norm=1"]
    one, other = folder(*many), folder(*many[:-1], "training.clip_norm=2")
    assert one != other
    assert max(len(one), len(other)) <= LONGEST_WORDS + len("digits--feddf-seed0")
