"""When, with which code and where a run was made, as its log has it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from fedfuse.core.origin import Origin
from fedfuse.federation.events import read_events
from fedfuse.federation.folder import RunFolder


@dataclass(frozen=True)
class Provenance:
    """One start of a run."""

    day: str
    origin: Origin


def starts(folder: RunFolder) -> Iterator[Provenance]:
    """How a run was begun, and gone on with."""
    for entry in read_events(folder.events):
        if entry["event"] in ("run_started", "run_resumed"):
            yield Provenance(date.fromtimestamp(entry["time"]).isoformat(), Origin(**entry["origin"]))
