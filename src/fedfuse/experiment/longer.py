"""A run that shall come to another number of rounds than it was begun with: whether it can, and how.

Where nothing depends on the number of rounds, a run of 60 is a run of 40 that goes on: bit for bit, and so are its
records. One thing differs in any case: the last round is measured also where ``evaluation.every`` would pass it over.
Then the run falls back to the checkpoint before that round, and plays it as the other run would.
"""

from __future__ import annotations

from dataclasses import dataclass

from fedfuse.core.files import write_text
from fedfuse.core.round_files import rounds_in
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.federation.checkpoint import SUFFIX, Saved, forget_after, go_on_from, load_checkpoint, save_checkpoint
from fedfuse.federation.folder import RunFolder


@dataclass(frozen=True)
class Length:
    """One experiment with two numbers of rounds: as the run in a folder was begun, and as it is wanted now."""

    begun: ExperimentConfig
    wanted: ExperimentConfig

    @property
    def differs(self) -> bool:
        """Whether they are the same but for that."""
        return self._before != self._now and self.begun.course() == self.wanted.course()

    @property
    def _before(self) -> int:
        return self.begun.federation.rounds

    @property
    def _now(self) -> int:
        return self.wanted.federation.rounds

    @property
    def common(self) -> int | None:
        """The last round that both have alike; None if all are."""
        every = self.wanted.evaluation.every
        return min((number - 1 for number in (self._before, self._now) if number % every), default=None)

    def reason_against(self, folder: RunFolder) -> str | None:
        """Why the run in a folder cannot become the one that is wanted; None if it can."""
        if dependent := self.wanted.dependent_on_rounds():
            return (
                f"holds a run of {self._before} rounds, which one of {self._now} does not go on from: {dependent[0]} "
                "depends on their number"
            )
        there = rounds_in(folder.checkpoints, SUFFIX)
        done = max([*there, folder.read_summary()["rounds"] if folder.is_complete() else 0])
        if done > self._now:
            return f"holds a run that has finished {done} rounds, and {self._now} are wanted"
        if folder.is_complete() and not there:
            return f"holds a finished run whose checkpoints are gone, so that it cannot go on to {self._now} rounds"
        if self.common is not None and done > self.common and there[0] > self.common:
            return (
                f"holds a run of {self._before} rounds, and one of {self._now} would measure round {self.common + 1} "
                f"otherwise (evaluation.every is {self.wanted.evaluation.every}), but there is no checkpoint before it"
            )
        return None

    def checkpoint(self, folder: RunFolder) -> Saved | None:
        """From where the run goes on."""
        before = None if self.common is None else self.common + 1
        return load_checkpoint(folder.checkpoints, self.begun.of_checkpoints, folder.events, before)

    def apply(self, folder: RunFolder) -> None:
        """Make the folder that of the run that is wanted.

        Whenever this is interrupted, what is there can be gone on with, as the one run or as the other.
        """
        saved = self.checkpoint(folder)
        folder.summary.unlink(missing_ok=True)
        folder.confusion.unlink(missing_ok=True)
        for model in list(folder.models()):
            model.unlink()
        if saved is not None:
            if self.common is not None:
                forget_after(folder.checkpoints, self.common)
            go_on_from(folder.checkpoints, saved)
            save_checkpoint(folder.checkpoints, saved, self.wanted.of_checkpoints)
        write_text(folder.config, self.wanted.to_yaml())
