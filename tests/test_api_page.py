"""The page of the API is what the docstrings say."""

from __future__ import annotations

import runpy
from pathlib import Path

import fedfuse

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "api.md").read_text(encoding="utf-8")


def test_the_page_is_up_to_date():
    written = runpy.run_path(str(DOCS / "write_api.py"))["page"]()
    assert written == PAGE, "docs/api.md is not what the docstrings say; run make docs"


def test_every_public_name_is_on_it():
    assert [name for name in fedfuse.__all__ if name != "__version__" and f"### {name}\n" not in PAGE] == []


def test_nothing_on_it_depends_on_the_machine():
    assert " at 0x" not in PAGE
    assert str(Path.home()) not in PAGE
