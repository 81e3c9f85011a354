"""Words of a command line."""

from __future__ import annotations

import re

import pytest

from fedfuse.cli.words import check_experiments, check_loudness, seeds_of, with_assignments
from fedfuse.core.asked import asked_by_command_line
from fedfuse.core.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("0,1,2", [0, 1, 2]), ("0-4", [0, 1, 2, 3, 4]), ("0-2,7", [0, 1, 2, 7]), (" 3 - 4 , 1 ", [3, 4, 1]), ("5-5", [5])],
)
def test_seeds_one_by_one_and_in_ranges(text: str, seeds: list[int]) -> None:
    assert seeds_of(text) == seeds


@pytest.mark.parametrize(
    "text", ["", ",", "0,0", "0-2,1", "4-0", "a", "0-", "-1", "1-2-3", "0..3", "1.5", "0-99999999", "9" * 9999, "²"]
)
def test_what_is_no_list_of_seeds_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^seeds=") as refused:
        seeds_of(text)
    assert len(str(refused.value)) < 250


@pytest.mark.parametrize(
    ("option", "assignment", "other"),
    [
        ("--method fedavg", "method=fedavg", "method=feddf"),
        ("--method fedavg", "method=fedavg", "method.name=feddf"),
        ("--seed 1", "seed=1", "seed=2"),
        ("--workers 1", "engine.workers=1", "engine.workers=2"),
    ],
)
def test_an_option_and_an_assignment_about_the_same_key_are_refused(option: str, assignment: str, other: str) -> None:
    sentence = f"{option} and --set {other} both say what {assignment.partition('=')[0]} is; keep one of them"
    with asked_by_command_line(), pytest.raises(ConfigError, match=f"^{re.escape(sentence)}"):
        with_assignments(dict([option.removeprefix("--").split()]), ["training.epochs=1", other])


def test_options_come_before_assignments() -> None:
    options = {"method": "fedprox", "seed": None}
    assert with_assignments(options, ["method.local.strength=1"]) == ["method=fedprox", "method.local.strength=1"]


def test_nobody_hears_nothing_and_everything() -> None:
    check_loudness(True, False)
    for quiet, as_json in ((True, False), (False, True)):
        with pytest.raises(ConfigError, match="both say what is printed; give one of them"):
            check_loudness(quiet, True, as_json)


@pytest.mark.parametrize(("word", "example"), [("feddf", "--methods fedavg,feddf"), ("1", "--seeds 0,1")])
def test_words_that_should_have_commas_are_no_experiments(word: str, example: str) -> None:
    with asked_by_command_line(), pytest.raises(ConfigError, match=f"^{word} is no experiment; .* commas: {example}$"):
        check_experiments(["digits", word])
    check_experiments(["digits", "mine.yaml"])
