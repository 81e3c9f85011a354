"""Runs that are watched while they go on: what each does now, and the page about all of them, from their files alone.

Little is read twice: of a log what was added, of a run all only when one of its rounds is over. A page is made when
somebody asks for it, and never so often that runs on the same machine would notice.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from fedfuse.core.errors import FedfuseError
from fedfuse.core.plain_text import one_line
from fedfuse.experiment.looking.folders import run_folders
from fedfuse.experiment.looking.gathering import sentence_about, side_by_side
from fedfuse.experiment.looking.page import page_data
from fedfuse.experiment.looking.stored_run import WHY, StoredRun, read_stored
from fedfuse.experiment.progress import MISHAPS, accuracies, mishap
from fedfuse.experiment.stored_config import StoredConfig
from fedfuse.federation.folder import RunFolder
from fedfuse.federation.lock import is_held
from fedfuse.report.monitor import ROUND, Counts, Monitor
from fedfuse.report.page import render
from fedfuse.report.page.data import PageData
from fedfuse.report.page.now import RunNow, State, now_section
from fedfuse.report.remaining import round_seconds
from fedfuse.report.sheet import Sheet

SHARE = 0.05
"""Of one processor's time, that making pages may take."""
LEAST_SECONDS = 0.5
"""Between two pages."""
SEARCH_SECONDS = 2.0
"""Between two looks for new folders."""
SAID = 5
"""Mishaps of a run, the latest."""
NOTABLE = frozenset(MISHAPS)
MOST_ROUNDS = 10**9


@dataclass(frozen=True)
class LivePage:
    """The page as it was made, and the tag by which a newer one is told from it."""

    tag: str
    html: str


class Pace:
    """Says when something may be done again that took so long the last time."""

    def __init__(self, least: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._least, self._clock, self._next = least, clock, -math.inf

    @property
    def is_due(self) -> bool:
        return self._clock() >= self._next

    def took(self, began: float) -> None:
        now = self._clock()
        self._next = now + max(self._least, (now - began) / SHARE)

    def begin(self) -> float:
        return self._clock()


class LiveRuns:
    """What is in and below some folders, asked again and again by several threads; a folder may be empty yet."""

    def __init__(self, places: Sequence[str | Path], title: str | None = None) -> None:
        self.places, self.title = [Path(place) for place in places], title
        self.asked_at = -math.inf
        """When somebody last asked what goes on."""
        self._last_words: set[str] = set()
        self._lock = threading.RLock()
        self._runs: dict[Path, _Watched] = {}
        self._search, self._making = Pace(SEARCH_SECONDS), Pace(LEAST_SECONDS)
        self._page: LivePage | None = None

    def news(self) -> str:
        """What goes on, as JSON for the page's script."""
        with self._lock:
            self.asked_at = time.monotonic()
            self._last_words.add("news")
            tag, now = self._tag(), self._now()
            return json.dumps({"page": tag, "now": now_section(now, tag, None)})

    def page(self) -> LivePage:
        """The page as it is now, or was a moment ago."""
        with self._lock:
            self._last_words.add("page")
            tag = self._tag()
            if self._page is None or self._page.tag != tag:
                self._page = self._made(tag)
            return self._page

    def now(self) -> list[RunNow]:
        """Every run at this moment."""
        with self._lock:
            return self._now()

    def end(self) -> None:
        """Whoever asks next gets the latest, however short a time ago the last page was made."""
        with self._lock:
            self._search, self._making = Pace(SEARCH_SECONDS), Pace(LEAST_SECONDS)
            is_known = self._page is not None and self._page.tag == self._tag()
            self._last_words = {"page"} if is_known else set()

    @property
    def was_seen_to_end(self) -> bool:
        """Whether somebody has asked for all that is new since ``end``."""
        return self._last_words == {"news", "page"}

    def _now(self) -> list[RunNow]:
        self._find()
        return [run.now for run in self._runs.values()]

    def _tag(self) -> str:
        """Of the page that would be sent: the latest that was made, unless it is time for another one."""
        if self._page is not None and not self._making.is_due:
            return self._page.tag
        self._find()
        signs = [(str(path), *run.sign) for path, run in self._runs.items()]
        return hashlib.sha256(repr(signs).encode()).hexdigest()[:16]

    def _made(self, tag: str) -> LivePage:
        began = self._making.begin()
        now = now_section(self._now(), tag, time.time())
        page = LivePage(tag, render(self._data(), now))
        self._making.took(began)
        return page

    def _data(self) -> PageData:
        runs, unreadable = list[StoredRun](), list[str]()
        for watched in self._runs.values():
            try:
                runs.append(watched.stored())
            except (FedfuseError, OSError) as error:
                unreadable.append(sentence_about(error, watched.folder.path))
        if not runs:
            nothing = Sheet("", (), (), [])
            title = self.title or "Waiting for runs"
            return PageData(title, "no run yet", nothing, None, None, None, nothing, [], [], [], notes=unreadable)
        return page_data(side_by_side(runs, len(self._runs), unreadable), self.title)

    def _find(self) -> None:
        """Folders that have come, and those that are gone; the others stay as they were."""
        if not self._search.is_due:
            return
        began = self._search.begin()
        found = {folder.path.resolve(): folder for place in self.places for folder in _below(place)}
        self._runs = {path: self._runs.get(path) or _Watched(folder) for path, folder in found.items()}
        self._search.took(began)


def _below(place: Path) -> list[RunFolder]:
    try:
        return run_folders([place])
    except (FedfuseError, OSError):  # nothing is there yet, or no longer
        return []


@dataclass
class _Watched:
    """One folder, and what is known of it."""

    folder: RunFolder
    _stored: tuple[Any, StoredRun] | None = field(default=None)
    _config: tuple[Any, StoredConfig | None] | None = field(default=None)

    @cached_property
    def monitor(self) -> Monitor:
        return Monitor(self.folder, NOTABLE)

    @property
    def sign(self) -> tuple[Any, ...]:
        """Another one whenever the page would be another."""
        counts = self._counts()
        begun, last = counts.about.get("time"), counts.last.get("time")
        why = tuple(counts.events[name] for name in WHY)
        return (_file_sign(self.folder.config), counts.events[ROUND], begun, last, why, self.state)

    @property
    def state(self) -> State:
        try:
            if self.folder.is_complete():
                return "finished"
        except OSError:  # a disk that does not answer
            return "stopped"
        return "running" if is_held(self.folder.path / ".lock") else "stopped"

    @property
    def now(self) -> RunNow:
        counts, config, state = self._counts(), self._read_config(), self.state
        done = _whole(counts.last.get("round")) or 0
        planned = (config.rounds if config is not None else None) or _whole(counts.about.get("rounds")) or done
        return RunNow(
            label=_label(config, self.folder),
            state=state,
            round=done,
            rounds=max(planned, done),
            measured=_measured(counts),
            step=_step(counts) if state == "running" else "",
            since=_time(counts.begun or counts.last),
            each=round_seconds(counts.lengths),
            at_most=config is not None and config.may_end_early,
            last_time=counts.last_time,
            mishaps=list(_mishaps(counts)),
        )

    def stored(self) -> StoredRun:
        """All of the run, read anew when something of it has changed."""
        sign = self.sign
        if self._stored is None or self._stored[0] != sign:
            self._stored = sign, read_stored(self.folder)
        return self._stored[1]

    def _counts(self) -> Counts:
        try:
            return self.monitor.look()
        except OSError:
            return Counts()

    def _read_config(self) -> StoredConfig | None:
        sign = _file_sign(self.folder.config)
        if self._config is None or self._config[0] != sign:
            self._config = sign, _config(self.folder.config)
        return self._config[1]


def _config(path: Path) -> StoredConfig | None:
    try:
        return StoredConfig.read(path)
    except (FedfuseError, OSError):
        return None


def _file_sign(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _label(config: StoredConfig | None, folder: RunFolder) -> str:
    if config is None:
        return one_line(folder.path.name)
    names = config.names()
    return f"{names['name']} {names['method']} seed {names['seed']}"


def _whole(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < MOST_ROUNDS else None


def _time(event: Any) -> float | None:
    found = event.get("time") if event else None
    return float(found) if isinstance(found, int | float) and 0 <= found < 1e12 else None


def _measured(counts: Counts) -> str:
    """Damaged logs are told of below."""
    try:
        return accuracies(counts.last) if counts.last else ""
    except (KeyError, TypeError, AttributeError, ValueError):
        return ""


def _step(counts: Counts) -> str:
    """What the run does, as far as its log says."""
    if counts.begun is None:
        return "getting ready" if not counts.last else "between two rounds"
    number, asked = _whole(counts.begun.get("round")), counts.begun.get("clients")
    if number is None or not isinstance(asked, list):
        return ""
    if counts.answered < len(asked):
        return f"round {number}: {counts.answered} of {len(asked)} clients have answered"
    return f"round {number}: all clients have answered, the server works"


def _mishaps(counts: Counts) -> Iterator[str]:
    """The latest, in sentences."""
    for line in list(counts.notable)[-SAID:]:
        try:
            said = mishap(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            continue
        if said:
            yield one_line(said)
