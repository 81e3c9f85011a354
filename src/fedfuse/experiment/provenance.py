"""When, with which code, where and from what a run was made, as its log has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from fedfuse.core.errors import shortened
from fedfuse.core.origin import Origin
from fedfuse.core.plain_text import one_line
from fedfuse.data.settings import OWN_FILES
from fedfuse.federation.events import Event, read_events
from fedfuse.federation.folder import RunFolder
from fedfuse.federation.sound import HUGE

LONGEST_DATA = 40
"""Letters of a name in a title."""
FACTS = ("config_sha256", "data", "partition_sha256", "code", "source", "clock", "device", "caution")
"""What a run's first event and its summary say about what it was made from."""
BY_NAME = ("data", "code", "source", "clock")
"""Of these, what has several values by name."""


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


def beginning(folder: RunFolder) -> Event:
    """The event with which the run began; empty if there is none."""
    return next((event for event in read_events(folder.events) if event["event"] == "run_started"), {})


def facts_of(said: Mapping[str, Any]) -> dict[str, Any]:
    """What a run was made from, as far as it is said in plain words and numbers: a log may say anything."""
    there = {name: said[name] for name in FACTS if name in said}
    facts = {name: _plain(fact) for name, fact in there.items() if isinstance(fact, Mapping) == (name in BY_NAME)}
    return {"data": {}, "source": None, **{name: fact for name, fact in facts.items() if fact is not None}}


def data_called(facts: Mapping[str, Any]) -> str:
    """What the data of a run are called: a known dataset's name, or the file that it was read from."""
    data = facts.get("data") or {}
    name, origin = str(data.get("name", "")), str(data.get("origin", ""))
    return shortened(origin, LONGEST_DATA) if origin and name in OWN_FILES else name


def _plain(value: Any) -> Any:
    """Text in one line, finite numbers, and one level of these by name; nothing for anything else."""
    if isinstance(value, Mapping):
        inner = {one_line(str(key)): _leaf(own) for key, own in value.items()}
        return {key: own for key, own in inner.items() if own is not None}
    return _leaf(value)


def _leaf(value: Any) -> str | float | None:
    if isinstance(value, str):
        return one_line(value)
    return value if type(value) in (int, float) and abs(value) < HUGE else None
