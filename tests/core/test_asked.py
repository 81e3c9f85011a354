"""Sentences speak of options to a command line and of arguments to Python, wherever they were written."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import fedfuse
from fedfuse.core.asked import ARGUMENTS, asked_by_command_line, in_words_of_asker
from fedfuse.core.errors import RunFolderError

SOURCE = Path(fedfuse.__file__).parent
ELSEWHERE = {"log-file", "shm-size"}
"""Options of commands that Python has no function for, and of other people's."""
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")


@pytest.mark.parametrize(
    ("written", "python"),
    [
        ("add --resume, --overwrite it, or another --out", "add resume=True, overwrite=True it, or another out="),
        ("--methods a,b,a: write others", "methods=a,b,a: write others"),
        ("say how many, --budget 30, or stop", "say how many, budget=30, or stop"),
        ("--set seed=1 and --seeds both say it", "the assignment seed=1 and seeds= both say it"),
        ("go on with: fedfuse run x --resume; or --overwrite", "go on with: fedfuse run x --resume; or overwrite=True"),
        ("--outside and x--out stay", "--outside and x--out stay"),
        ("", ""),
    ],
)
def test_python_hears_of_arguments_and_a_command_line_of_options(written: str, python: str) -> None:
    assert in_words_of_asker(written) == python
    with asked_by_command_line():
        assert in_words_of_asker(written) == written
    assert in_words_of_asker(in_words_of_asker(written)) == python


def test_an_error_is_put_into_words_when_it_is_read() -> None:
    error = RunFolderError("choose another --out")
    with asked_by_command_line():
        assert str(error) == "choose another --out"
        assert f"{RunFolderError(f'cell: {error}')}" == "cell: choose another --out"
    assert str(error) == "choose another out="


def test_no_function_of_python_raises_a_sentence_with_an_option_that_has_no_argument() -> None:
    """Whatever stands in a string of an error outside the rooms of commands can be said in Python."""
    rooms = [SOURCE / name for name in ("core", "data", "engines", "experiment", "federation", "models", "parts")]
    unknown = {
        (str(path.relative_to(SOURCE)), option)
        for room in rooms
        for path in room.rglob("*.py")
        for text in _texts_of_errors(path)
        for option in OPTION.findall(re.sub(r"\bfedfuse [a-z]+\b[^;,()]*", "", text))
        if option not in ARGUMENTS and option not in ELSEWHERE
    }
    assert not unknown


def _texts_of_errors(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    raised = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None]
    strings = (node for exc in raised for node in ast.walk(exc) if isinstance(node, ast.Constant))
    return [node.value for node in strings if isinstance(node.value, str)]
