"""The table of events in docs/python.md has every event that the code tells, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import fedfuse

SOURCE = Path(fedfuse.__file__).parent
PAGE = SOURCE.parents[1] / "docs" / "python.md"
TOLD = [
    r'\.(?:emit|tell)\(\s*"([a-z_]+)"',
    r'"event": "([a-z_]+)"',
    r'\b(?:_of|told_of)\(cell, "([a-z_]+)"',
    r'_tell\(log, number, "([a-z_]+)"',
]


def test_every_event_is_in_the_table_and_every_row_is_an_event() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    told = {name for pattern in TOLD for name in re.findall(pattern, code)}
    told |= set(re.findall(r'"(run_started|run_resumed)" if saved', code)) | {
        "run_started",
        "client_absent",
        "tracker_failed",
    }
    table = PAGE.read_text(encoding="utf-8").partition("| event | its fields | when |")[2].partition("\n\n")[0]
    listed = {name for row in table.splitlines()[2:] for name in re.findall(r"`([a-z_]+)`", row.split("|")[1])}
    assert told - listed == set()
    assert listed - told - {"seat_claimed", "parties_asked"} == set()
