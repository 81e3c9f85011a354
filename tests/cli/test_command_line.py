"""The command line in all surroundings: tracebacks, pipes, narrow and dumb terminals, other encodings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.cli.test_cli import InProcess, only_sentence
from tests.cli.test_cli import in_process as in_process

OWN = '''
import fedfuse
class Broken(fedfuse.Merge):
    """Cannot merge."""
    def merge(self, view, prototype, updates):
        return helper(updates)
def helper(updates):
    raise IndexError("no such update")
'''
QUICK = ("--method", "fedavg", "--set", "federation.rounds=1", "--set", "evaluation.pictures=false")
BROKEN = ("run", "digits", *QUICK, "--set", "method.merge={kind: 'broken_merge:Broken'}")
LISTS = [
    *([name] for name in ("methods", "datasets", "models", "presets", "parts", "keys")),
    ["methods", "feddf"],
    ["parts", "merge", "ties"],
    ["parts", "optimizer"],
    ["models", "resnet8"],
    ["datasets", "cifar10"],
    ["keys", "alpha"],
    ["help", "temperature"],
    ["-h"],
]


@pytest.fixture
def own_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_merge.py").write_text(OWN)
    monkeypatch.delitem(sys.modules, "broken_merge", raising=False)


def test_a_mistake_shows_no_traceback_unless_it_is_wanted(
    in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake = ("run", "digits", "--set", "training.epochs=many")
    plain = in_process(*mistake)
    assert "Traceback" not in plain.stderr
    monkeypatch.setenv("FEDFUSE_TRACEBACK", "0")
    assert "Traceback" not in in_process(*mistake).stderr
    monkeypatch.delenv("FEDFUSE_TRACEBACK")
    asked = in_process(*mistake, "--traceback")
    monkeypatch.setenv("FEDFUSE_TRACEBACK", "1")
    told = in_process(*mistake)
    for shown in (asked, told):
        assert shown.returncode == plain.returncode == 2
        assert shown.stderr.startswith("Traceback")
        assert shown.stderr.endswith(plain.stderr)
        assert "ValidationError" in shown.stderr, "what the sentence was made from is shown too"


@pytest.mark.usefixtures("own_merge")
@pytest.mark.parametrize("more", [(), ("--workers", "2")])
def test_an_error_in_code_of_ones_own_names_its_file_and_line(in_process: InProcess, more: tuple[str, ...]) -> None:
    done = in_process(*BROKEN, *more)
    assert done.returncode == 2
    said = done.stderr.splitlines()[-1]
    assert said == (
        "fedfuse: your own code failed: IndexError: no such update (broken_merge.py, line 8); "
        "--traceback shows the way there"
    )
    assert "Traceback" not in done.stderr
    if not more:
        assert "in helper" in in_process(*BROKEN, "--overwrite", "--traceback").stderr


def test_an_error_of_ours_is_not_hidden_behind_a_sentence(
    in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedfuse.cli.lists.LISTS", {"methods": partial(divmod, 1, 0)})
    with pytest.raises(ZeroDivisionError):
        in_process("methods")


def fedfuse(*words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    surroundings = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR", "LC_ALL")}
    command = [sys.executable, "-m", "fedfuse", *words]
    return subprocess.run(command, env={**surroundings, **environment}, capture_output=True, timeout=120)


def test_lists_need_neither_colours_nor_unicode_nor_a_wide_terminal() -> None:
    """In one process: what each prints to a pipe, where letters are bytes below 128."""
    script = (
        "import sys, json\nfrom fedfuse.cli import main\n"
        "for words in json.loads(sys.argv.pop()):\n    sys.argv[1:] = words\n    main()\n    print('=====')\n"
    )
    surroundings = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LANG": "C", "LC_ALL": "C", "TERM": "dumb"}
    environment = {**{key: value for key, value in os.environ.items() if key != "COLUMNS"}, **surroundings}
    command = [sys.executable, "-c", script, json.dumps(LISTS)]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.decode("ascii").split("=====\n")
    for words, text in zip(LISTS, printed, strict=False):
        assert text, words
        assert "\x1b" not in text
        assert max(map(len, text.splitlines())) <= 80, words


def test_a_reader_that_has_seen_enough_is_no_mistake() -> None:
    command = f"{sys.executable} -m fedfuse keys | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("name ")
    assert done.stderr == ""


def test_a_name_that_a_terminal_has_no_letters_for_is_shown_all_the_same() -> None:
    done = fedfuse("run", "naïve-ünïcode-✓", PYTHONIOENCODING="ascii")
    assert done.returncode == 2
    assert b"unknown file or preset 'na" in done.stderr


def test_signs_of_tables_have_others_where_they_cannot_be_written() -> None:
    code = "from fedfuse.cli.letters import use_known_letters as use; use(); print('─ 3 ± 1 ✓')"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert done.stdout == b"- 3 +- 1 ?\n"


def test_the_version_is_one_line(in_process: InProcess) -> None:
    assert in_process("--version").stdout.startswith("fedfuse 0")


def test_options_before_the_experiment_are_checked_as_well(in_process: InProcess) -> None:
    said = only_sentence(in_process("run", "--set", "lr=1", "digits"))
    assert said == "digits: unknown key 'lr' (did you mean 'training.optimizer.learning_rate'?)"


def test_a_method_is_said_once(in_process: InProcess) -> None:
    """One of both would be without effect."""
    words = ("run", "digits", "--set", "method=fedavg", "--method", "feddf")
    assert "--method feddf and --set method=fedavg both say what method is" in only_sentence(in_process(*words))
