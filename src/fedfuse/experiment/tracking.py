"""A run in the eyes of its trackers: who listens to it on their behalf, and what they are told.

Whatever a tracker does, the run neither waits for it nor ends with it; that it failed is said once. A run that goes on
is the same run there: rounds that an earlier process has handed over are not handed over again, and those that it could
not are, from the log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from fedfuse.core.errors import FedfuseError, StopRun
from fedfuse.core.files import names_in
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.experiment.progress import Mishaps
from fedfuse.federation.events import Event, Listener, read_events
from fedfuse.federation.folder import RunFolder
from fedfuse.report.trackers import Ending, Session, TrackedRun, Tracker
from fedfuse.report.trackers.numbers import of_round, of_summary, parameters
from fedfuse.report.trackers.worker import Worker

PATIENCE = 30.0
"""Seconds that the end of a run waits for a tracker at most."""
FAILED = "tracker_failed"


def check_trackers(config: ExperimentConfig) -> None:
    """Refuse a tracker that is not installed, before anything is run."""
    for tracker in config.track:
        tracker.check()


def grouped(config: ExperimentConfig, group: str) -> ExperimentConfig:
    """The experiment as one of a comparison or a sweep; who names a group means it."""
    if not config.track:
        return config
    trackers = tuple(one if one.group else one.model_copy(update={"group": group}) for one in config.track)
    return config.model_copy(update={"track": trackers})


@contextmanager
def tracked(config: ExperimentConfig, folder: RunFolder, others: Sequence[Listener] = ()) -> Iterator[list[Listener]]:
    """The listeners of an experiment's trackers while it runs; ``others`` hear of one that fails."""
    check_trackers(config)
    tracking = [_Tracking(tracker, config, folder, others) for tracker in config.track]
    try:
        yield list[Listener](tracking)
    except BaseException:
        for one in tracking:
            one.close("failed")
        raise
    for one in tracking:
        one.close("finished" if folder.is_complete() else "stopped")


class _Tracking:
    """The listener of one tracker."""

    def __init__(
        self, tracker: Tracker, config: ExperimentConfig, folder: RunFolder, others: Sequence[Listener]
    ) -> None:
        self.tracker, self.config, self.folder, self.others = tracker, config, folder, others
        self.worker: Worker | None = None
        self.mishaps = Mishaps()
        self.round = 0
        self._totals: dict[str, float] = {}
        self._is_said = False

    def __call__(self, event: Event) -> None:
        if event["event"] in ("run_started", "run_resumed"):
            self._begin(event["event"] == "run_resumed")
        elif self.worker is not None:
            self._hand_over(event, self.worker)
            self._say_failure(self.worker)

    def close(self, ending: Ending) -> None:
        """Hand over the end, and give the tracker some time for it."""
        if self.worker is None:
            return
        with suppress(FedfuseError, OSError):
            summary = of_summary(self.folder.read_summary()) if ending == "finished" else {}
            self.worker.do(partial(_finish, ending=ending, summary=summary, files=list(self._files())))
        self.worker.close(PATIENCE)
        with suppress(StopRun):  # there is nothing left to stop
            self._say_failure(self.worker)

    def _begin(self, is_resumed: bool) -> None:
        """The log has all rounds that were finished before, and since when."""
        started, rounds = 0.0, dict[int, Mapping[str, float]]()
        for event in read_events(self.folder.events):
            if event["event"] == "run_started":
                started = event["time"]
            elif event["event"] == "round_finished":
                self.round = event["round"]
                rounds[self.round] = self._totals = of_round(event, self._totals)
        run = TrackedRun(
            id=hashlib.sha256(f"{self.folder.path.name} {self.config.label} {started}".encode()).hexdigest()[:20],
            name=self.config.label,
            group=self.tracker.group,
            folder=self.folder.path,
            parameters=parameters(self.config.model_dump(mode="json")),
            resumed_at=self.round if is_resumed else None,
        )
        self.worker = Worker(partial(self.tracker.open, run))
        if rounds:
            self.worker.do(partial(_catch_up, rounds=rounds))

    def _hand_over(self, event: Event, worker: Worker) -> None:
        if event["event"] == "round_started":
            self.round = event["round"]
        elif event["event"] == "round_finished":
            self._totals = of_round(event, self._totals)
            worker.do(partial(_numbers, number=event["round"], values=self._totals))
        elif event["event"] != FAILED and (sentence := self.mishaps(event)):
            worker.do(partial(_mishap, number=self.round, sentence=sentence))

    def _say_failure(self, worker: Worker) -> None:
        if worker.failure is None or self._is_said:
            return
        self._is_said = True
        for listener in self.others:
            listener({"event": FAILED, "tracker": self.tracker.kind, "reason": worker.failure})

    def _files(self) -> Iterator[Path]:
        yield from (self.folder.pictures / name for name in names_in(self.folder.pictures))
        if self.tracker.models:
            yield from self.folder.models()


def _numbers(session: Session, number: int, values: Mapping[str, float]) -> None:
    """A round that a former process has handed over already comes to the same numbers again."""
    if number > (session.last_round or 0):
        session.numbers(number, values)


def _catch_up(session: Session, rounds: Mapping[int, Mapping[str, float]]) -> None:
    """What a former process could not hand over; where that cannot be known, nothing is."""
    last = session.last_round
    for number, values in rounds.items() if last is not None else ():
        if number > last:  # type: ignore[operator]
            session.numbers(number, values)


def _mishap(session: Session, number: int, sentence: str) -> None:
    session.mishap(number, sentence)


def _finish(session: Session, ending: Ending, summary: Mapping[str, float], files: Sequence[Path]) -> None:
    session.finish(ending, summary, files)
