"""A run as its folder shows it now, finished or not: numbers that can be trusted to be numbers, and its config.

Nothing is imported that the folder names, no data is read, and no checkpoint.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

from fedfuse.core.errors import DataError, RunFolderError
from fedfuse.core.plain_text import one_line
from fedfuse.data import PartitionReport
from fedfuse.experiment.provenance import facts_of
from fedfuse.experiment.result import RunResult
from fedfuse.experiment.stored import load_run
from fedfuse.experiment.stored_config import StoredConfig
from fedfuse.federation import confusion
from fedfuse.federation.confusion import Confusion
from fedfuse.federation.events import events_that_begin, last_time
from fedfuse.federation.folder import RunFolder
from fedfuse.federation.lock import is_held
from fedfuse.federation.summary import ANSWERS_AS_ENSEMBLE, MetricFacts, summarise_rounds
from fedfuse.parts.metrics import Better, Unit

State = Literal["finished", "running", "unfinished"]
WHY = ("update_refused", "client_absent", "client_late", "client_screened")
"""Events that say why a client that was asked did not count."""
MOST_REASONS = 1000
"""That are told apart."""


@dataclass(frozen=True, eq=False)
class StoredRun:
    """``result`` has what was measured, ``config`` what was asked for."""

    result: RunResult
    config: StoredConfig
    is_running: bool = field(default=False)

    @property
    def folder(self) -> RunFolder:
        return self.result.folder

    @property
    def summary(self) -> Mapping[str, Any]:
        return self.result.summary

    @property
    def seed(self) -> int:
        return int(self.summary["seed"])

    @property
    def label(self) -> str:
        return f"{self.summary['name']} {self.summary['method']} seed {self.seed}"

    @property
    def state(self) -> State:
        if self.result.is_finished:
            return "finished"
        return "running" if self.is_running else "unfinished"

    @property
    def rounds(self) -> int:
        """That are finished."""
        return len(self.result.history)

    @property
    def planned(self) -> int:
        """Rounds; a run that stopped at its target needs no more than it had."""
        return self.rounds if self.result.is_finished else max(self.config.rounds or 0, self.rounds)

    @property
    def answers_as_ensemble(self) -> bool:
        return self.config.answers_as_ensemble or self.summary.get(ANSWERS_AS_ENSEMBLE) is True

    @cached_property
    def last_time(self) -> float | None:
        """Of its latest event, in seconds since 1970."""
        return last_time(self.folder.events)

    @cached_property
    def partition(self) -> PartitionReport | None:
        """Who had which examples; None if that cannot be read."""
        try:
            return PartitionReport.load(self.folder.partition)
        except DataError:
            return None

    @cached_property
    def confusions(self) -> Mapping[str, Confusion]:
        """By model, what it takes each class for; only of finished runs, and of none of earlier versions."""
        try:
            return confusion.read(self.folder.confusion)
        except (RunFolderError, OSError):
            return {}

    def class_names(self, classes: int) -> Sequence[str]:
        """What so many classes are called; their numbers if the run does not know."""
        known = self.partition.called if self.partition is not None else ()
        return known if len(known) == classes else [str(number) for number in range(classes)]

    @cached_property
    def reasons(self) -> Mapping[str, Counter[str]]:
        """Why clients that were asked did not count, by the event, and how often."""
        found = {name: Counter[str]() for name in WHY}
        beginnings = tuple(f'{{"event": "{name}"'.encode() for name in WHY)
        for event in events_that_begin(self.folder.events, beginnings):
            own, reason = found[event["event"]], one_line(str(event.get("reason", "")))
            own[reason if reason in own or len(own) < MOST_REASONS else "other reasons"] += 1
        return {name: own for name, own in found.items() if own}

    def until(self, rounds: int) -> StoredRun:
        """The same run as it was after so many rounds."""
        if rounds == self.rounds:
            return self
        history = self.result.history[:rounds]
        told = _retold(replace(self.result, history=history, is_finished=False), self.config)
        return replace(self, result=told)


def read_stored(folder: RunFolder) -> StoredRun:
    """The run in a folder, or one sentence about what is wrong with it."""
    for path in (folder.config, folder.events, folder.summary):
        if os.path.lexists(path) and not path.is_file():
            raise RunFolderError(f"{path} is not a file")
    config = StoredConfig.read(folder.config)
    result = _retold(load_run(folder.path), config)
    is_running = not result.is_finished and bool(is_held(folder.path / ".lock"))
    return StoredRun(result, config, is_running)


def _retold(result: RunResult, config: StoredConfig) -> RunResult:
    """The same result with a summary from its records, which are sound; the stored one may say anything."""
    said = result.summary
    names = result.history[0].prototypes if result.history else said["prototypes"]
    known = {name: said["prototypes"].get(name, {}) for name in names}
    models = {
        name: {"parameters": _count(own.get("parameters")), "weights_sha256": _text(own.get("weights_sha256"))}
        for name, own in known.items()
    }
    called = {**config.names(), "method": _text(said.get("method")) or config.names()["method"]}
    answers = {ANSWERS_AS_ENSEMBLE: True} if said.get(ANSWERS_AS_ENSEMBLE) is True else {}
    about = {**called, **facts_of(said), **answers}
    server_models = said.get("server_models", config.server_models) is True
    metrics = config.metrics or [fact for own in known.values() for fact in _metrics(own.get("metrics"))]
    summary = summarise_rounds(result.history, models, about, config.target, server_models, metrics)
    return replace(result, summary=summary)


def _metrics(said: Any) -> list[MetricFacts]:
    """How metrics are read whose code is not at hand, as the run has written it."""
    entries = said.items() if isinstance(said, Mapping) else ()
    found: list[tuple[str, Any, Any]] = [
        (str(name), own.get("better"), own.get("unit")) for name, own in entries if isinstance(own, Mapping)
    ]
    return [
        MetricFacts(name.partition(".")[0], better, unit)
        for name, better, unit in found
        if better in get_args(Better) and unit in get_args(Unit)
    ]


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 60 else None


def _text(value: Any) -> str | None:
    return one_line(value) if isinstance(value, str) and value else None
