"""A run's counts on a page for whoever watches it. Nothing on it is about a single client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from fedfuse.core.facts_page import facts_page, paragraph, section
from fedfuse.report.monitor import BOUNDED, WITHOUT, Counts
from fedfuse.report.prometheus import MISHAPS

BAD = ("trouble", "models diverged", "rounds without updates", "seats claimed")


def run_page(counts: Counts, run: str, is_complete: bool, trouble: str | None) -> str:
    """What there is to see of the run of this name, ``trouble`` first."""
    body = section("Rounds", _rounds(counts, is_complete, trouble), BAD)
    for model, record in counts.last.get("prototypes", {}).items():
        body += section(f"Model {model}", _measured(record))
    if counts.last.get("privacy"):
        body += section("Privacy", _privacy(counts))
    if counts.last:
        body += section("Clients' tasks, and what travelled", _traffic(counts))
    return facts_page(f"fedfuse {run}", run, body + paragraph("The same as numbers, for Prometheus: /metrics"))


def _rounds(counts: Counts, is_complete: bool, trouble: str | None) -> Iterator[tuple[str, str]]:
    if trouble is not None:
        yield "trouble", trouble
    if counts.last_time is None:
        return
    yield "state", "finished" if is_complete else "under way"
    yield "round", f"{counts.last.get('round', 0)} of {counts.about.get('rounds', 'unknown')}"
    if counts.last:
        yield "last round", f"took {float(counts.last['seconds']):,.1f} s"
    yield "last event", f"{datetime.fromtimestamp(counts.last_time, UTC):%Y-%m-%d %H:%M:%S} UTC"
    for name, (_, kinds) in MISHAPS.items():
        if number := sum(counts.events[kind] for kind in kinds):
            yield name.replace("_", " "), f"{number:,}"


def _measured(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for what in ("accuracy", "loss"):
        if record.get(what) is not None:
            yield what, f"{float(record[what]):.4f}"


def _privacy(counts: Counts) -> Iterator[tuple[str, str]]:
    """What is promised, and what all rounds so far came to for the client that gave away most."""
    promised, record = counts.about.get("privacy", {}), counts.last["privacy"]
    yield "of every", str(promised.get("unit", "unknown"))
    for what, value in (("epsilon so far", record.get("epsilon")), ("towards the server", record.get("server"))):
        if value is not None:
            yield what, f"{float(value):.4g} at delta {promised.get('delta', 'unknown')}"
    if promised.get("budget") is not None:
        yield "budget", f"{promised['budget']}, and {record.get('left')} clients have some left"
    yield "noise", str(promised.get("noise", "unknown"))


def _traffic(counts: Counts) -> Iterator[tuple[str, str]]:
    yield "counted", f"{counts.drawn - sum(counts.without.values()):,}"
    for reason in WITHOUT:
        yield reason, f"{counts.without[reason]:,}"
    for what in BOUNDED:
        if number := counts.bounded[what]:
            yield what.replace("_", " "), f"{number:,}"
    yield "to the server", f"{counts.bytes_up:,} bytes"
    yield "to the clients", f"{counts.bytes_down:,} bytes"
