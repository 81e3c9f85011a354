"""What a tracker is: settings that open a session, and a session that is told of rounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from fedfuse.core.errors import MissingExtraError
from fedfuse.core.part import Part

Ending = Literal["finished", "stopped", "failed"]


@dataclass(frozen=True)
class TrackedRun:
    """What a tracker hears of a run before its first round."""

    id: str
    """The same when the run is gone on with, and another one when it is run anew."""
    name: str
    group: str | None
    """The comparison or sweep that it belongs to."""
    folder: Path
    parameters: Mapping[str, str | int | float | bool]
    """The experiment, every key by its address."""
    resumed_at: int | None
    """The last round that it goes on from; None for a run that begins."""


class Session(ABC):
    """One process's part of a tracked run. It is called from a thread of its own, and may fail or take its time."""

    @property
    def last_round(self) -> int | None:
        """The last round that an earlier process has left there; None where that cannot be known."""
        return None

    @abstractmethod
    def numbers(self, number: int, values: Mapping[str, float]) -> None:
        """What was measured in a round, by names such as ``accuracy/mlp``."""

    def mishap(self, number: int, sentence: str) -> None:
        """What went otherwise than planned, if the tracker has a place for sentences."""
        return

    @abstractmethod
    def finish(self, ending: Ending, summary: Mapping[str, float], files: Sequence[Path]) -> None:
        """The end of the run, or of this process's part of it; the files are pictures, and models if asked for."""


class Tracker(Part):
    """A program that keeps the curves of many runs. It changes no bit, and so is no part of a run's identity."""

    package: ClassVar[str] = ""
    """What has to be installed, and is by the extra of the same name."""

    kind: str
    group: str | None = Field(None, description="what it belongs to; a comparison or a sweep gives its own name")
    models: bool = Field(False, description="whether final models are handed over, too")

    def check(self) -> None:
        """Refuse, before the first round, what cannot work here."""
        if self.package and find_spec(self.package) is None:
            raise MissingExtraError(f"track {self.kind}", self.package)

    @abstractmethod
    def open(self, run: TrackedRun) -> Session:
        """Begin, or go on with what an earlier process of the run has left there."""
