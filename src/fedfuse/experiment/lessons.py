"""What a finished run failed to teach: models that are as they were at the start, rounds in which nobody counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fedfuse.core.errors import NothingLearntError


def doubts(summary: Mapping[str, Any]) -> Iterator[str]:
    """What a reader of its results should know, in sentences; summaries of older runs do not say it."""
    for name in summary.get("untaught", ()):
        yield f"model {name} was never taught: its final weights are those of the start"
    if number := summary.get("rounds_in_vain", 0):
        yield f"nobody counted in {number} of {summary['rounds']} rounds, which left everything as it was"


def check_that_something_was_learnt(summary: Mapping[str, Any]) -> None:
    """Raise if all rounds were in vain, or if no model of the server is another than at the start."""
    if summary.get("rounds_in_vain", 0) == summary["rounds"] > 0:
        raise NothingLearntError(f"nobody counted in any of {summary['rounds']} rounds: {_whys(summary)}")
    if summary.get("untaught") and len(summary["untaught"]) == len(summary["prototypes"]):
        raise NothingLearntError("no model was taught in any round; events.jsonl says why (model_diverged)")


def _whys(summary: Mapping[str, Any]) -> str:
    counts = {
        "absent": summary["clients_absent"],
        "late": summary["clients_late"],
        "refused": summary["updates_refused"],
    }
    said = ", ".join(f"{count} times {word}" for word, count in counts.items() if count)
    return f"clients were {said}; events.jsonl says why" if said else "no client was asked"
