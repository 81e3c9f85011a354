"""The one log of a run: a line of JSON per event, and listeners that show them as they happen."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from fedfuse.core.files import flush
from fedfuse.core.plain_json import dumps

Event = Mapping[str, Any]
Listener = Callable[[Event], None]


@dataclass(frozen=True)
class Mark:
    """A place in a log: the bytes before it, and their hash. A log that was cut or edited has it no more."""

    bytes: int
    sha256: str


class EventLog:
    """Appends events to a file, if there is one, and tells every listener.

    Ticks (progress inside a round) are told but not written.
    """

    def __init__(self, path: Path | None = None, listeners: tuple[Listener, ...] = ()) -> None:
        self.path = path
        self.listeners = listeners
        self._file: BinaryIO | None = None
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
        self._file.write(line)
        self._file.flush()  # a killed process loses nothing that was logged
        self._length += len(line)
        self._digest.update(line)

    def _opened(self, path: Path) -> BinaryIO:
        """The file, and what it has so far read once."""
        self._length, self._digest = 0, hashlib.sha256()
        for line in _lines(path):
            self._length += len(line)
            self._digest.update(line)
        file = path.open("ab")
        flush(path.parent)  # it may be new there
        return file

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


def finished_rounds(path: Path, until: Mark) -> list[dict[str, Any]] | None:
    """The events of finished rounds before a mark; None if the log is not the one in which the mark was made."""
    length, digest, finished = 0, hashlib.sha256(), []
    for line in _lines(path):
        if length + len(line) > until.bytes:
            break
        length += len(line)
        digest.update(line)
        if line.startswith(b'{"event": "round_finished"'):
            finished.append(line)
    return [json.loads(line) for line in finished] if Mark(length, digest.hexdigest()) == until else None


def _lines(path: Path) -> Iterator[bytes]:
    if path.exists():
        with path.open("rb") as lines:
            yield from lines
