"""What an operator watches of a run, counted from its log: the same for every engine, while it runs and afterwards."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from fedfuse.federation.events import Event
from fedfuse.federation.folder import RunFolder
from fedfuse.report.remaining import WINDOW

STARTS = ("run_started", "run_resumed")
ROUND = "round_finished"
BEGUN = "round_started"
ANSWERED = "client_finished"
KEPT = 20
"""Of the latest events that somebody wants to read."""
WITHOUT = ("refused", "absent", "late", "screened")
"""Why a client's update did not count."""
BOUNDED = ("claims_bounded", "moves_bounded")
"""Why it counted for less than it said, or as a shorter one."""


@dataclass
class Counts:
    """What was seen so far; None where nothing was measured yet."""

    about: Mapping[str, Any] = field(default_factory=dict)
    """The latest start of the run, as its log has it."""
    events: Counter[str] = field(default_factory=Counter)
    unreadable: int = 0
    """Lines that are no event."""
    drawn: int = 0
    """Clients' tasks, of all rounds together."""
    without: Counter[str] = field(default_factory=Counter)
    """Of these, who did not count, by the reason."""
    bounded: Counter[str] = field(default_factory=Counter)
    """And who counted for less, by what was bounded."""
    bytes_up: int = 0
    bytes_down: int = 0
    seconds: float = 0.0
    last: Mapping[str, Any] = field(default_factory=dict)
    """The latest finished round."""
    last_time: float | None = None
    """Of the latest event."""
    begun: Mapping[str, Any] | None = None
    """The round that is under way."""
    answered: int = 0
    """Of its clients."""
    lengths: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW + 1))
    """The seconds of the latest rounds."""
    notable: deque[bytes] = field(default_factory=lambda: deque(maxlen=KEPT))
    """The latest lines of those kinds that were asked for."""

    def add(self, line: bytes, notable: Set[str] = frozenset()) -> None:
        """Of most events only the name is read, because there may be one per client and round."""
        name = _name(line)
        if name in STARTS:
            self.about, self.begun = json.loads(line), None
        elif name == ROUND:
            self._add_round(json.loads(line))
        elif name == BEGUN:
            self.begun, self.answered = json.loads(line), 0
        elif name == ANSWERED:
            self.answered += 1
        if name in notable:
            self.notable.append(line)
        self.events[name] += 1

    def _add_round(self, event: Event) -> None:
        without = {reason: len(event.get(reason, ())) for reason in WITHOUT}
        if "late" not in event and "clock" in event:  # as older runs have it
            without["late"] = len(event["clock"]["late"]) + len(event["clock"]["left"])
        drawn, up, down = len(event["clients"]), int(event["bytes_up"]), int(event["bytes_down"])
        self.seconds += float(event["seconds"])
        self.drawn, self.bytes_up, self.bytes_down = self.drawn + drawn, self.bytes_up + up, self.bytes_down + down
        self.without.update(without)
        self.bounded.update({what: len(event.get(what, ())) for what in BOUNDED})
        self.lengths.append(float(event["seconds"]))
        self.last, self.begun = event, None


class Monitor:
    """Counts a run's log; asked again, it reads what was added since, and all if the run fell back to a checkpoint."""

    def __init__(self, folder: RunFolder, notable: Set[str] = frozenset()) -> None:
        """``notable`` are names of events of which the latest lines are kept."""
        self.folder, self.notable = folder, notable
        self._one_at_a_time = threading.Lock()
        self._start_over()

    def look(self) -> Counts:
        """All that the log says now."""
        with self._one_at_a_time:
            return self._look()

    @property
    def is_complete(self) -> bool:
        return self.folder.is_complete()

    def trouble(self, silence: float | None) -> str | None:
        """What somebody should look after: no run, or one in which nothing happened for more seconds than these."""
        latest = self.look().last_time
        if latest is None:
            return "there is no run yet"
        quiet = time.time() - latest
        if self.is_complete or silence is None or quiet <= silence:
            return None
        return f"nothing happened for {quiet:.0f} s"

    def _look(self) -> Counts:
        if not self._still_there():
            self._start_over()
        line = b""
        for line in self._new_lines():
            try:
                self._counts.add(line, self.notable)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                self._counts.unreadable += 1
        if line:
            self._counts.last_time = _time(line) or self._counts.last_time
        return self._counts

    def _start_over(self) -> None:
        self._counts, self._place, self._latest = Counts(), 0, b""

    def _still_there(self) -> bool:
        """Whether the latest line that was counted is where it was: every line has its own time."""
        if not self._latest:
            return True
        if not self.folder.events.is_file():
            return False
        with self.folder.events.open("rb") as log:
            log.seek(self._place - len(self._latest))
            return log.read(len(self._latest)) == self._latest

    def _new_lines(self) -> Iterator[bytes]:
        if not self.folder.events.is_file():
            return
        with self.folder.events.open("rb") as log:
            log.seek(self._place)
            for line in log:
                if not line.endswith(b"\n"):
                    return  # it is being written
                self._place, self._latest = self._place + len(line), line
                yield line


def _name(line: bytes) -> str:
    """Of the event, with which its line begins."""
    _, key, _, name, _ = line.split(b'"', 4)
    if key != b"event":
        raise ValueError("not an event")
    return name.decode()


def _time(line: bytes) -> float | None:
    try:
        return float(json.loads(line)["time"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
