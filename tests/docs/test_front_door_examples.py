"""Every function of the front door has an example that is run: on the Python page, or where parts are written."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import fedfuse
from tests.docs.blocks import texts_of

DOCS = Path(__file__).parent.parent.parent / "docs"
FUNCTIONS = [name for name in fedfuse._PLACES if inspect.isfunction(getattr(fedfuse, name))]
ELSEWHERE = {
    "audit": "audit.md",  # trains shadows
    "bench": "performance.md",  # takes a minute
    "make_source": "own-method.md",  # nothing without a part around it
}


def examples(page: str) -> str:
    return "\n".join(texts_of(f"docs/{page}", "python"))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_an_example(name: str) -> None:
    called = rf"\bfedfuse\.{name}\("
    assert re.search(rf"`(fedfuse\.)?{name}`", (DOCS / "python.md").read_text(encoding="utf-8")), "named on the page"
    if name in ELSEWHERE:
        assert re.search(called, (DOCS / ELSEWHERE[name]).read_text(encoding="utf-8"))
    else:
        assert re.search(called, examples("python.md"))
