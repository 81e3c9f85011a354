"""What is said while a run goes on."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from fedfuse.cli.progress import RunProgress


@pytest.mark.parametrize(
    ("event", "line"),
    [
        ({"event": "client_retried", "client": 3, "reason": "it slept"}, "client 3 was retried: it slept"),
        ({"event": "work_retried", "what": "teacher 1", "reason": "it slept"}, "teacher 1 was retried: it slept"),
        ({"event": "update_refused", "client": 3, "reason": "NaN"}, "client 3 was refused: NaN"),
    ],
)
def test_what_went_wrong_is_said(event, line):
    RunProgress(Console(file=(file := io.StringIO())))({"round": 1, **event})
    assert file.getvalue().strip() == line
