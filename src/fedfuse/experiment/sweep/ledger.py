"""What a sweep has written down: what it searches (``sweep.yaml``), and every trial when it begins and when it ends.

The runs of the trials are run folders beside it. A sweep that is taken up again reads from here what was tried, and
from the runs what is left of the last ones; it needs no other memory, and none that only one version of Optuna reads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fedfuse.core.errors import RunFolderError
from fedfuse.core.files import is_there, make_folder, names_in, write_text
from fedfuse.core.yaml_text import dump_yaml
from fedfuse.experiment.config import read_yaml
from fedfuse.experiment.sweep.space import Values
from fedfuse.experiment.sweep.trial import Outcome
from fedfuse.federation.events import Event, EventLog, read_events
from fedfuse.federation.lock import acquire

ABOUT, TRIALS, LOCK = "sweep.yaml", "trials.jsonl", ".lock"
SUGGESTED, ENDED = "trial_suggested", "trial_ended"


@dataclass(frozen=True)
class About:
    """What makes a sweep the same sweep; its budget may grow."""

    experiment: str
    """The hash of the experiment that it varies."""
    over: tuple[str, ...]
    sampler: str
    seed: int
    seeds: tuple[int, ...]
    judged: str
    prune: bool
    window: int
    """A trial is suggested when all are known that began so many before it: how many run side by side may change."""

    def to_json(self) -> dict[str, Any]:
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}


class Ledger:
    """The trials of one sweep, as its folder has them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.values: dict[int, Values] = {}
        self.outcomes: dict[int, Outcome] = {}
        self._log = EventLog(folder / TRIALS)

    @contextmanager
    def opened(self, about: About) -> Iterator[About]:
        """Keep other processes out, and read what is there; as the sweep was begun."""
        self._create()
        try:
            descriptor = acquire(self.folder / LOCK)
        except BlockingIOError:
            raise RunFolderError(f"{self.folder} is in use by another sweep; wait or choose another --out") from None
        try:
            with closing(self._log):
                yield self._begun(about)
        finally:
            os.close(descriptor)

    def suggested(self, number: int, values: Values) -> None:
        self.values[number] = values
        self._log.emit(SUGGESTED, trial=number, values=dict(values))
        self._log.mark()

    def ended(self, number: int, outcome: Outcome) -> None:
        self.outcomes[number] = outcome
        self._log.emit(ENDED, trial=number, **outcome.to_json())
        self._log.mark()

    def run_folder(self, number: int, seed: int) -> Path:
        return self.folder / f"trial-{number:03d}-seed{seed}"

    def read(self) -> None:
        """All trials that were written down."""
        for event in read_events(self.folder / TRIALS):
            try:
                self._take(event)
            except (KeyError, TypeError, ValueError, AttributeError):
                raise RunFolderError(
                    f"{self.folder / TRIALS} is not as the sweep left it; bring it back, or choose another --out"
                ) from None

    def _take(self, event: Event) -> None:
        number = event["trial"]
        if type(number) is not int or number < 0:
            raise ValueError("no number of a trial")
        if event["event"] == SUGGESTED:
            if number != len(self.values):
                raise ValueError("a trial is missing")
            self.values[number] = dict(event["values"])
        elif event["event"] == ENDED:
            self.outcomes[number] = Outcome.from_json(event)
            if number not in self.values:
                raise ValueError("a trial ended that was not begun")

    def _create(self) -> None:
        make_folder(self.folder)
        strangers = [name for name in names_in(self.folder) if not name.startswith(".")]
        if strangers and not is_there(self.folder / ABOUT):
            raise RunFolderError(
                f"{self.folder} holds other files ('{strangers[0]}') and no sweep; choose another --out"
            )

    def _begun(self, about: About) -> About:
        file = self.folder / ABOUT
        if not is_there(file):
            write_text(file, dump_yaml(about.to_json()))
            return about
        before, now = read_yaml(file), about.to_json()
        now["window"] = before.get("window")
        if type(before.get("window")) is not int or before["window"] < 1:
            raise RunFolderError(f"{file} is not as the sweep left it; bring it back, or choose another --out")
        for key, value in now.items():
            if before.get(key) != value:
                difference = _difference(key, before, now)
                raise RunFolderError(f"{self.folder} holds another sweep: {difference}; choose another --out")
        self.read()
        return About(**{**asdict(about), "window": before["window"]})


def _difference(key: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    if key == "experiment":
        return "its experiment, or what is changed in it, is not this one"
    return f"{key} is {before.get(key)} there and {now[key]} here"
