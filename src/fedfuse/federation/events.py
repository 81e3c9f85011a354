"""The one log of a run: a line of JSON per event, and listeners that show them as they happen."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

from fedfuse.core.errors import RunFolderError, StopRun
from fedfuse.core.files import flush
from fedfuse.core.plain_json import dumps

FINISHED = b'{"event": "round_finished"'
"""How the line of a finished round begins."""
TAIL = 1 << 20
"""Bytes at the end of a log in which there is a whole line, but for rounds of a hundred thousand clients."""
MOST_SECONDS = 1 << 40
"""Since 1970, above which a time is a mistake."""
Event = Mapping[str, Any]
Listener = Callable[[Event], None]


@dataclass(frozen=True)
class Mark:
    """A place in a log: the bytes before it, and their hash. A log that was cut or edited has it no more."""

    bytes: int
    sha256: str

    @staticmethod
    def from_json(value: Any) -> Mark | None:
        """None if it is no mark."""
        sound = isinstance(value, dict) and type(value.get("bytes")) is int and type(value.get("sha256")) is str
        return Mark(value["bytes"], value["sha256"]) if sound else None


class EventLog:
    """Appends events to a file, if there is one, and tells every listener.

    Ticks (progress inside a round) are told but not written.
    """

    def __init__(self, path: Path | None = None, listeners: tuple[Listener, ...] = ()) -> None:
        self.path = path
        self.listeners = listeners
        self.stop: StopRun | None = None
        """What a listener raised who wants the run to stop after this round."""
        self._file: FileIO | None = None
        self._length, self._digest = 0, hashlib.sha256()

    def emit(self, event: str, **fields: Any) -> None:
        entry = {"event": event, "time": round(time.time(), 3), **fields}
        if self.path is not None:
            self._append(self.path, f"{dumps(entry)}\n".encode())
        self._tell(entry)

    def mark(self) -> Mark:
        """Where the log is now; all that was logged before is on the disk."""
        if self._file is not None:
            os.fsync(self._file.fileno())
        return Mark(self._length, self._digest.hexdigest())

    def cut(self, mark: Mark) -> None:
        """Forget what was logged after a mark."""
        self.close()
        if self.path is not None:
            os.truncate(self.path, mark.bytes)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _append(self, path: Path, line: bytes) -> None:
        self._file = self._file or self._opened(path)
        try:
            left = memoryview(line)
            while left:  # unbuffered: a killed process loses nothing, and a failed write is not tried again at the end
                left = left[self._file.write(left) :]
        except OSError:
            with suppress(OSError):  # whoever opens the log next does the same
                os.truncate(path, self._length)
            raise
        self._length += len(line)
        self._digest.update(line)

    def _opened(self, path: Path) -> FileIO:
        """The file, and what it has so far read once; half a line, which a failing disk left, is cut off."""
        self._length, self._digest = 0, hashlib.sha256()
        for line in _lines(path):
            if not line.endswith(b"\n"):
                os.truncate(path, self._length)
                break
            self._length += len(line)
            self._digest.update(line)
        file = path.open("ab", buffering=0)
        flush(path.parent)  # it may be new there
        return file

    def tick(self, what: str, done: int, total: int) -> None:
        self.tell("tick", what=what, done=done, total=total)

    def tell(self, event: str, **fields: Any) -> None:
        """For listeners only."""
        self._tell({"event": event, **fields})

    def _tell(self, entry: Event) -> None:
        for listener in self.listeners:
            try:
                listener(entry)
            except StopRun as stop:
                self.stop = self.stop or stop


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """Every event of a log up to its end, or up to a last line that a killed process left half-written."""
    for number, line in enumerate(_lines(path), start=1):
        event = _event(line)
        if event is not None:
            yield event
        elif line.endswith(b"\n"):
            raise _damaged(path, number)


def _damaged(path: Path, number: int) -> RunFolderError:
    return RunFolderError(
        f"{path}, line {number} is damaged; bring the log back as the run left it, or run it anew with --overwrite"
    )


def last_event(path: Path) -> dict[str, Any] | None:
    """The event in the last line; None if there is none."""
    last = b""
    for line in _lines(path):
        last = line
    return _event(last)


def last_time(path: Path) -> float | None:
    """When the latest event was logged, from the end of the file alone; None if that cannot be said."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL))
            lines = log.read(TAIL).splitlines()
    except OSError:
        return None
    times = [event.get("time") for event in map(_event, lines) if event is not None]
    sound = [time for time in times if isinstance(time, int | float) and 0 <= time < MOST_SECONDS]
    return float(sound[-1]) if sound else None


def finished_rounds(path: Path, until: Mark) -> list[dict[str, Any]] | None:
    """The events of finished rounds before a mark; None if the log is not the one in which the mark was made."""
    length, digest, finished = 0, hashlib.sha256(), []
    for line in _lines(path):
        if length + len(line) > until.bytes:
            break
        length += len(line)
        digest.update(line)
        if line.startswith(FINISHED):
            finished.append(line)
    if Mark(length, digest.hexdigest()) != until:
        return None
    events = [event for event in map(_event, finished) if event is not None]
    return events if len(events) == len(finished) else None


def finished_events(path: Path) -> Iterator[dict[str, Any]]:
    """The events of finished rounds up to the end of a log; other lines, which may be many, are not decoded."""
    return events_that_begin(path, (FINISHED,))


def events_that_begin(path: Path, beginnings: tuple[bytes, ...]) -> Iterator[dict[str, Any]]:
    """The events whose lines begin so; half a line at the end is one that is being written."""
    for number, line in enumerate(_lines(path), start=1):
        if line.startswith(beginnings) and line.endswith(b"\n"):
            event = _event(line)
            if event is None:
                raise _damaged(path, number)
            yield event


def has_finished_rounds(path: Path) -> bool:
    return any(line.startswith(FINISHED) for line in _lines(path))


def _event(line: bytes) -> dict[str, Any] | None:
    """None for a line that is no event."""
    try:
        event = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as lines:
            yield from lines
    except (FileNotFoundError, NotADirectoryError):
        return
