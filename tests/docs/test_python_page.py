"""The examples of docs/python.md and of the public docstrings, as a reader would run them."""

from __future__ import annotations

import doctest
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fedfuse

PAGE = Path(__file__).parent.parent.parent / "docs" / "python.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# (\w+)\.py\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder as that of somebody who tries things out."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in FILE.findall("\n".join(BLOCKS)):
        sys.modules.pop(name, None)


def test_every_example_of_the_page_runs(folder: Path) -> None:
    pytest.importorskip("pandas")
    names: dict[str, object] = {"__name__": "page"}
    for number, block in enumerate(BLOCKS):
        if file := FILE.match(block):
            (folder / f"{file[1]}.py").write_text(block)
        else:
            exec(compile(block, f"{PAGE.name}, example {number + 1}", "exec"), names)


@pytest.mark.usefixtures("without_pictures")
def test_the_examples_of_docstrings_give_what_they_say(folder: Path) -> None:
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    names = ("Experiment", "run", "compare", "run_all", "load_run", "replay", "expected_seconds", "check_data")
    lists = ("list_methods", "list_datasets", "list_models", "list_presets")
    known = {"fedfuse": fedfuse, "Experiment": fedfuse.Experiment}
    for name in (*names, *lists):
        examples = [test for test in finder.find(getattr(fedfuse, name), name, globs=known) if test.examples]
        assert examples, f"{name} has no example"
        for example in examples:
            assert runner.run(example).failed == 0, name
    assert (folder / "runs").is_dir()
