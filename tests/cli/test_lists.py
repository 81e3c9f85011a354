"""Lists and misspelt names are there at once: they import neither torch nor anything else that is heavy."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.cli.test_cli import InProcess, only_sentence
from tests.cli.test_cli import in_process as in_process

HEAVY = {"torch", "numpy", "scipy", "sklearn", "matplotlib", "pyarrow", "PIL", "pandas", "safetensors"}
OPTIONS = {"typer", "pydantic"}
"""What reads options."""
WORDS = [
    *([name] for name in ("methods", "datasets", "models", "presets", "parts", "keys", "--version", "metods")),
    *(["methods", name] for name in ("feddf", "fedafg")),
    ["datasets", "digits"],
    ["models", "resnet8"],
    ["parts", "merge", "ties"],
    ["keys", "alpha"],
    ["presets", "digits"],
    ["run", "nosuch"],
    ["compare", "nosuch.yaml"],
    ["run", "digits", "--method", "fedafg"],
    ["run", "digits", "--set", "lr=3"],
    ["compare", "digits", "--methods", "fedavg,fedafg"],
]
WITH_OPTIONS = [
    ["-h"],
    ["run", "-h"],
    ["generator", "trian"],
    ["methods", "feddf", "--yaml"],
    ["run", "--method", "fedafg", "digits"],
    ["run", "digits", "--rounds", "3"],
    ["sweep", "digits", "--over", "partition.alfa=0.1,1"],
    ["compare", "digits", "--over", "partition.alfa=0.1,1"],
    ["privacy", "digits", "--set", "partition.alfa=1"],
    ["completion", "--line", "fish", "fedfuse run digits --set "],
]
SCRIPT = """
import contextlib, io, json, sys
from fedfuse.cli import main
imported = []
for words in json.loads(sys.argv.pop()):
    sys.argv[1:] = words
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        main()
    imported.append(sorted({name.partition(".")[0] for name in sys.modules}))
print(json.dumps(imported))
"""


def test_none_of_them_imports_anything_heavy():
    environment = {key: value for key, value in os.environ.items() if key != "FEDFUSE_DATA"}
    arguments = [sys.executable, "-c", SCRIPT, json.dumps(WORDS + WITH_OPTIONS)]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True, timeout=200)
    imported = [set(names) for names in json.loads(done.stdout)]
    assert imported[len(WORDS) - 1] & (HEAVY | OPTIONS) == set()
    assert imported[-1] & HEAVY == set()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("run", "digits", "--method", "fedafg"), "digits: unknown method 'fedafg' (did you mean 'fedavg'?)"),
        (("compare", "digits", "--methods", "fedafg"), "digits: unknown method 'fedafg' (did you mean 'fedavg'?)"),
        (
            ("sweep", "digits", "--over", "training.lr=0.1..1"),
            "--over training.lr=0.1..1 fits nothing here: training: unknown key 'lr' "
            "(did you mean 'training.optimizer.learning_rate'?)",
        ),
        (
            ("compare", "digits", "--methods", "fedprox", "--over", "method.local.strenght=1,2"),
            "--over method.local.strenght=1,2 fits nothing here: method.local: unknown key 'strenght' "
            "(did you mean 'strength'?)",
        ),
        (
            ("run", "digits", "--set", "models.mpl.hidden=[8]"),
            "digits: models.mpl: arch is missing (did you mean 'mlp'?)",
        ),
        (("run", "nosuch.yaml"), "nosuch.yaml: No such file or directory"),
        (("run", "digtis"), "unknown file or preset 'digtis' (did you mean 'digits'?)"),
        (("run", "digtis", "--seed", "1"), "unknown file or preset 'digtis' (did you mean 'digits'?)"),
    ],
)
def test_a_misspelt_name_gets_its_sentence(in_process: InProcess, words: tuple[str, ...], sentence: str):
    assert only_sentence(in_process(*words)) == sentence


def test_a_comma_too_much_names_no_method(in_process: InProcess):
    answer = in_process("compare", "digits", "--methods", "fedavg,,fedprox,", "--set", "partition.clients=100000")
    assert "more than the 1006 training examples" in only_sentence(answer)
