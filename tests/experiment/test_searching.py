"""What is found for a word, best first."""

from __future__ import annotations

import pytest

import fedfuse
from fedfuse.catalogue.details import glossary
from fedfuse.cli.named import show_dataset, show_keys, show_method, show_model, show_parts, show_preset
from fedfuse.experiment.searching import everything


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("lr", "fedfuse keys training.optimizer.learning_rate"),
        ("fedprox", "fedfuse methods fedprox"),
        ("proximal", "fedfuse parts local proximal"),
        ("merge", "fedfuse parts merge"),
        ("aggregation", "fedfuse parts merge"),
        ("ties", "fedfuse parts merge ties"),
        ("resnet8", "fedfuse models resnet8"),
        ("cifar10", "fedfuse datasets cifar10"),
        ("rounds", "fedfuse keys federation.rounds"),
        ("McMahan", "fedfuse methods fedavg"),
        ("Yadav TIES", "fedfuse parts merge ties"),
    ],
)
def test_the_first_match_is_the_one_that_was_meant(words: str, command: str) -> None:
    assert fedfuse.search(*words.split())[0].command == command


def test_terms_of_the_field_are_found_by_their_names() -> None:
    assert "screen" in next(match.text for match in fedfuse.search("byzantine") if match.name.startswith("Byzantine"))
    assert len(glossary()) > 50
    assert not any(sign in text for pair in glossary() for text in pair for sign in ("**", "`", "]("))


def test_all_words_must_fit_and_nonsense_finds_nothing() -> None:
    assert len(fedfuse.search("clients", "temperature")) < len(fedfuse.search("temperature"))
    assert fedfuse.search("zzzzzz") == []


def test_every_command_that_is_named_can_be_typed(capsys: pytest.CaptureFixture[str]) -> None:
    shows = {"methods": show_method, "parts": show_parts, "keys": show_keys, "models": show_model,
             "datasets": show_dataset, "presets": show_preset}  # fmt: skip
    commands = {match.command for match in everything() if match.command}
    for command in sorted(commands)[::7]:
        _, what, *names = command.split()
        shows[what](*names)
        assert capsys.readouterr().out
