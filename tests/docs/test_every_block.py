"""Every command, script and experiment of README and docs works, page by page, as a reader would try it."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_cli import in_process
from tests.docs.blocks import blocks_of, pages
from tests.docs.preparations import PREPARATIONS
from tests.docs.reader import Reader, short_experiments

__all__ = ["in_process"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder; whatever is imported from it is forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.pages
@pytest.mark.parametrize("page", pages())
def test_every_block_of_the_page_works(page, folder, in_process):
    reader = Reader(folder, in_process)
    with short_experiments():
        if page in PREPARATIONS:
            PREPARATIONS[page](reader)
        reader.write_files(page)
        for block in blocks_of(page):
            if block.reason is None:
                try:
                    reader.follow(block)
                except BaseException as error:
                    error.add_note(f"in {block.place}")
                    raise


def test_what_is_not_run_has_a_reason_that_is_known():
    reasons = Counter(block.reason for page in pages() for block in blocks_of(page) if block.reason)
    assert all(re.match("needs |takes (minutes|hours)|serves until", reason) for reason in reasons), reasons
    assert reasons.total() < 60


def test_preparations_are_for_pages_that_exist():
    assert set(PREPARATIONS) <= set(pages())
