"""The examples of docs/python.md and of the public docstrings, as a reader would run them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

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


@pytest.mark.pages
def test_every_example_of_the_page_runs(folder: Path) -> None:
    pytest.importorskip("pandas")
    names: dict[str, object] = {"__name__": "page"}
    for number, block in enumerate(BLOCKS):
        if file := FILE.match(block):
            (folder / f"{file[1]}.py").write_text(block)
        else:
            exec(compile(block, f"{PAGE.name}, example {number + 1}", "exec"), names)
