"""The records of finished rounds, as the log of a run has them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fedfuse.core.errors import RunFolderError
from fedfuse.federation.events import Event, Mark, finished_events, finished_rounds, last_event
from fedfuse.federation.sound import are_sound
from fedfuse.federation.state import RoundRecord

LOG = "log"
"""Where the last event of a run has the mark of all that was logged before it."""


def rounds_until(log: Path, mark: Mark) -> tuple[RoundRecord, ...] | None:
    """Those before a mark; None if the log is not the one in which the mark was made."""
    events = finished_rounds(log, mark)
    return None if events is None else _records(log, events)


def rounds_of_finished(log: Path) -> tuple[RoundRecord, ...]:
    """Those of a run that is over, whose last event vouches for all before it; in earlier versions it did not."""
    last = last_event(log)
    if last is None or last["event"] != "run_finished":
        raise _changed(log, "it does not end with the end of the run")
    if LOG not in last:
        return rounds_so_far(log)
    mark = Mark.from_json(last[LOG])
    rounds = None if mark is None else rounds_until(log, mark)
    if rounds is None:
        raise _changed(log, "it was edited or cut")
    return rounds


def rounds_so_far(log: Path) -> tuple[RoundRecord, ...]:
    """Those that the log of a run has now, whatever becomes of the last of them if the run is killed."""
    return _records(log, finished_events(log))


def _records(log: Path, events: Iterable[Event]) -> tuple[RoundRecord, ...]:
    try:
        records = tuple(map(RoundRecord.from_event, events))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise _changed(log, "the record of a round cannot be read") from error
    if not are_sound(records):
        raise _changed(log, "the record of a round cannot be true")
    return records


def _changed(log: Path, reason: str) -> RunFolderError:
    return RunFolderError(f"{log} is not as the run left it: {reason}; bring it back, or run it anew with --overwrite")
