"""A thread between a run and a tracker, so that the run never waits for it nor ends with it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, Full, Queue

from fedfuse.report.trackers.base import Session

MOST_WAITING = 1000
"""Calls that a tracker may be behind; then it is given up."""
Call = Callable[[Session], None]


class Worker:
    """Opens a session and makes the calls that are handed to it, in their order, until one fails."""

    def __init__(self, open_session: Callable[[], Session], most_waiting: int = MOST_WAITING) -> None:
        self.failure: str | None = None
        """Why nothing more is handed over."""
        self._calls: Queue[Call | None] = Queue(most_waiting)
        self._open = open_session
        self._thread = threading.Thread(target=self._work, name="fedfuse-tracker", daemon=True)
        self._thread.start()

    def do(self, call: Call) -> None:
        """Later, and not at all if the tracker has failed."""
        if self.failure is None:
            try:
                self._calls.put_nowait(call)
            except Full:
                self.failure = f"it is {self._calls.maxsize} calls behind"

    def close(self, seconds: float) -> None:
        """Wait until all calls are made, but so long at most."""
        if self.failure is None:
            try:
                self._calls.put(None, timeout=seconds)
            except Full:
                self.failure = "it does not answer"
        if self.failure is None:
            self._thread.join(seconds)
            if self._thread.is_alive():
                self.failure = f"it did not end within {seconds:g} s"

    def _work(self) -> None:
        try:
            session = self._open()
            while self.failure is None and (call := self._calls.get()) is not None:
                call(session)
        except (Exception, SystemExit) as error:  # whatever a tracker does, the run goes on
            lines = str(error).strip().splitlines()
            self.failure = f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
        while self.failure is not None:
            try:
                self._calls.get_nowait()
            except Empty:
                return
