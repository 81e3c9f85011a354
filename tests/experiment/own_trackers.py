"""Trackers of one's own, as a user would write them in a file."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from fedfuse.report.trackers import Ending, Session, TrackedRun, Tracker


class Notebook(Session):
    """Writes down whatever it hears."""

    kept: ClassVar[dict[str, Notebook]] = {}

    def __init__(self, run: TrackedRun) -> None:
        self.run, self.heard = run, list[Any]()
        self.last = max([0, *(one for one, _ in self.kept[run.id].heard)]) if run.id in self.kept else 0
        self.kept[run.id] = self
        self.ended: Any = None

    @property
    def last_round(self) -> int:
        return self.last

    def numbers(self, number: int, values: Mapping[str, float]) -> None:
        self.heard.append((number, dict(values)))

    def finish(self, ending: Ending, summary: Mapping[str, float], files: Sequence[Path]) -> None:
        self.ended = (ending, dict(summary), [path.name for path in files])


class Recording(Tracker):
    """Keeps everything."""

    def open(self, run: TrackedRun) -> Session:
        return Notebook(run)


class Broken(Tracker):
    """Fails when it is opened, or when it is told of a round."""

    at: str = "open"

    def open(self, run: TrackedRun) -> Session:
        if self.at == "open":
            raise ConnectionError("no route to host\nand more lines")
        return BrokenSession()


class BrokenSession(Session):
    def numbers(self, number: int, values: Mapping[str, float]) -> None:
        raise SystemExit("login failed")

    def finish(self, ending: Ending, summary: Mapping[str, float], files: Sequence[Path]) -> None:
        raise AssertionError("nothing is handed over after a failure")


class Hanging(Tracker):
    """Never answers."""

    def open(self, run: TrackedRun) -> Session:
        threading.Event().wait()
        raise AssertionError
