"""Trackio: curves in a local database, shown by ``trackio show``; it speaks as W&B does."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from fedfuse.report.trackers.base import Ending, Session, TrackedRun, Tracker


class Trackio(Tracker):
    """Runs of a project of Trackio, on this machine."""

    package: ClassVar[str] = "trackio"
    kind: Literal["trackio"] = "trackio"
    project: str = Field("fedfuse", description="the project that runs are put into")

    def open(self, run: TrackedRun) -> Session:
        import trackio

        for module in (trackio, sys.modules["trackio.run"]):  # what it prints would be between a run's own lines
            vars(module)["print"] = _silence
        name = f"{run.name} {run.id[:8]}"
        opened = trackio.init(
            project=self.project, name=name, group=run.group, config=dict(run.parameters), resume="allow", embed=False
        )
        return _Session(opened, _last_step(self.project, name) if run.resumed_at is not None else 0)


def _silence(*_words: object, **_options: object) -> None:
    pass


def _last_step(project: str, name: str) -> int | None:
    """The last one in its database; None for a version of Trackio that does not tell."""
    try:
        from trackio.sqlite_storage import SQLiteStorage

        return SQLiteStorage.get_last_step(project, name) or 0
    except (ImportError, AttributeError, TypeError):
        return None


class _Session(Session):
    def __init__(self, run: Any, last: int | None) -> None:
        self.run, self._last = run, last

    @property
    def last_round(self) -> int | None:
        return self._last

    def numbers(self, number: int, values: Mapping[str, float]) -> None:
        self.run.log(dict(values), step=number)

    def finish(self, ending: Ending, summary: Mapping[str, float], files: Sequence[Path]) -> None:
        if summary:
            self.run.log({f"summary/{name}": value for name, value in summary.items()}, step=int(summary["rounds"]))
        self.run.finish()
