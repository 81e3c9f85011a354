"""The one log of a run: a line of JSON per event, and listeners that show them as they happen."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from fedfuse.core.files import write_text
from fedfuse.core.plain_json import dumps

Event = Mapping[str, Any]
Listener = Callable[[Event], None]


class EventLog:
    """Appends events to a file, if there is one, and tells every listener.

    Ticks (progress inside a round) are told but not written.
    """

    def __init__(self, path: Path | None = None, listeners: tuple[Listener, ...] = ()) -> None:
        self.path = path
        self.listeners = listeners
        self._file: TextIO | None = None

    def emit(self, event: str, **fields: Any) -> None:
        entry = {"event": event, "time": round(time.time(), 3), **fields}
        if self.path is not None:
            self._file = self._file or self.path.open("a", encoding="utf-8")
            self._file.write(dumps(entry) + "\n")
            self._file.flush()  # a killed process loses nothing that was logged
        self._tell(entry)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def tick(self, what: str, done: int, total: int) -> None:
        self._tell({"event": "tick", "what": what, "done": done, "total": total})

    def _tell(self, entry: Event) -> None:
        for listener in self.listeners:
            listener(entry)


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """Every event of a log up to its end, or up to a line that a killed process left half-written."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                return


def forget_after(path: Path, finished_round: int) -> None:
    """Drop what was logged after a round (and a half-written last line), so that a resumed run repeats nothing."""
    if not path.exists():
        return
    kept = []
    for entry in read_events(path):
        if entry.get("round", 0) > finished_round or entry["event"] == "run_finished":
            break
        kept.append(dumps(entry) + "\n")
    write_text(path, "".join(kept))
