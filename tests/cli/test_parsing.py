"""A command line that is wrong gets one sentence: what, where, and what was probably meant."""

from __future__ import annotations

import pytest

from fedfuse.cli.parsing import OF_FUSIONS
from fedfuse.fusing.plan import FusePlan
from tests.cli.test_cli import InProcess, only_sentence
from tests.cli.test_cli import in_process as in_process

MISTAKES = [
    ("run digits --rounds 3", "run has no option --rounds (did you mean --set federation.rounds=3?)"),
    ("run digits --rounds=3", "run has no option --rounds (did you mean --set federation.rounds=3?)"),
    ("run digits --lr 0.1", "run has no option --lr (did you mean --set training.optimizer.learning_rate=0.1?)"),
    ("run digits --alpha", "run has no option --alpha (did you mean --set partition.alpha=VALUE?)"),
    ("run digits --learning-rate 1", "(did you mean --set training.optimizer.learning_rate=1?)"),
    ("run digits --jobs 2", "run has no option --jobs (did you mean --workers?)"),
    ("run digits --methods fedavg", "run has no option --methods (did you mean --method?)"),
    ("run digits --seeds 1", "run has no option --seeds (did you mean --seed?)"),
    ("fuse a b --steps 9", "fuse has no option --steps (did you mean --set steps=9?)"),
    ("fuse a b --learning-rate 9", "fuse has no option --learning-rate (did you mean --set learning_rate=9?)"),
    ("run digits --outt x", "run has no option --outt (did you mean --out?)"),
    ("run digits --zzzzz", "run has no option --zzzzz; fedfuse run -h says more"),
    ("run digits --seed x", "run: --seed is 'x', but should be a whole number from 0"),
    ("run digits --seed=-3", "run: --seed is '-3', but should be a whole number from 0"),
    ("run digits --seed", "run: option '--seed' needs a value"),
    ("run", "run needs FILE_OR_PRESET (YAML file, preset or run folder)"),
    ("run digits what", "run does not know what to do with 'what'"),
    ("export x", "export needs --to PATH (the file to write"),
    ("flower suprelink", "flower: unknown command 'suprelink' (did you mean 'superlink'?)"),
    ("flower superlink --log-format xml", "flower superlink: --log-format is 'xml', but should be text or json"),
    ("completion csh", "completion takes bash, zsh or fish"),
    ("--versoin", "fedfuse has no option --versoin"),
    ("parts merge tie", "merge: unknown kind 'tie' (did you mean 'ties'?)"),
    ("parts mrege", "unknown slot 'mrege' (did you mean 'merge'?)"),
    ("models resnet9", "unknown architecture 'resnet9' (did you mean 'resnet8'?)"),
    ("keys learnig_rate", "no key has 'learnig_rate' in its name (did you mean 'learning_rate'?)"),
    ("help proxmal", "nothing here has to do with 'proxmal' (did you mean 'proximal'?)"),
    ("parts a b c", "parts does not know what to do with 'c'"),
    ("init --task sound", "unknown task 'sound'"),
    ("init --data digitz", "unknown dataset or file 'digitz' (did you mean 'digits'?)"),
]


@pytest.mark.parametrize(("line", "sentence"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_a_mistake_gets_its_sentence(in_process: InProcess, line: str, sentence: str) -> None:
    assert sentence in only_sentence(in_process(*line.split()))


def test_a_group_without_a_command_says_what_it_has(in_process: InProcess) -> None:
    done = in_process("generator")
    assert done.returncode == 2
    assert "train" in done.stderr


def test_old_spellings_still_work(in_process: InProcess) -> None:
    """One method and one seed are natural to write in the singular; both mean the same list."""
    said = only_sentence(in_process("compare", "digits", "--method", "fedafg", "--seed", "0"))
    assert said == "digits: unknown method 'fedafg' (did you mean 'fedavg'?)"


def test_settings_of_a_fusion_are_those_of_its_plan():
    said_otherwise = {"method", "workers", "as_lora", "rank"}
    assert set(OF_FUSIONS) == FusePlan.model_fields.keys() - said_otherwise
