"""fedfuse privacy: what a promise would cost, before anything is run."""

from __future__ import annotations

import pytest

from fedfuse.core.releases import Release
from fedfuse.privacy.accountants import epsilon_of
from tests.cli.test_cli import in_process, only_sentence
from tests.helpers import tiny_config, tiny_method

__all__ = ["in_process"]

pytestmark = pytest.mark.usefixtures("without_pictures")
LINKS = [{"kind": "clip", "norm": 1.0}, {"kind": "noise", "multiplier": 2.0}]


@pytest.fixture
def file(tmp_path):
    merge = {"kind": "mean", "weighting": "uniform"}
    config = tiny_config(tiny_method("fedavg", merge=merge, upload=LINKS), privacy={"unit": "client"})
    path = tmp_path / "private.yaml"
    path.write_text(config.to_yaml())
    return str(path)


def test_it_prints_epsilon_round_by_round_and_trains_nothing(file, tmp_path, in_process):
    answer = in_process("privacy", file, "--set", "federation.participation=1.0")
    printed = answer.stdout
    assert answer.returncode == 0
    assert "epsilon of every client, at delta 1e-05 (rdp)" in printed
    for visits in (1, 2):
        assert f"{epsilon_of([Release(2.0, 1.0, visits)], 1e-5, 'rdp'):.4g}" in printed
    assert "method.upload[1].multiplier 2" in printed
    assert not (tmp_path / "runs").exists()


def test_it_prints_the_noise_that_budgets_need(file, in_process):
    printed = in_process("privacy", file, "--budgets", "1,4").stdout
    assert "noise that a budget needs" in printed
    assert max(map(len, printed.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--budgets", "one"], "--budgets one: write numbers, separated by commas"),
        (["--budgets", "-1"], "epsilons are above 0"),
        (["--set", "privacy=null"], "promises privacy, but nobody counts it"),
        (["--set", "method.upload=[]"], "no noise that protects all of a client's data"),
    ],
)
def test_mistakes_are_sentences(file, in_process, arguments, sentence):
    assert sentence in only_sentence(in_process("privacy", file, *arguments))


def test_an_experiment_that_promises_nothing(in_process):
    assert "this experiment promises no privacy" in only_sentence(in_process("privacy", "digits"))


def test_a_private_run_says_what_it_came_to(file, in_process):
    answer = in_process("run", file, "--out", "private")
    assert "round 2/2" in answer.stdout
    assert f"epsilon {epsilon_of([Release(2.0, 1.0, 2)], 1e-5, 'rdp'):.3g}" in answer.stdout
    assert "at delta 1e-05, of every client (rdp); noise from the seed: a simulation" in answer.stdout
