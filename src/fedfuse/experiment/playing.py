"""The rounds of a run, one after another: when they are saved, which was the best, and when it is enough."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

from fedfuse.core.round_files import rounds_in
from fedfuse.experiment.assembly import Built
from fedfuse.experiment.judged import watch_of
from fedfuse.experiment.keeping import Keeping
from fedfuse.experiment.sketching import Sketches
from fedfuse.federation import RoundRecord, Snapshot
from fedfuse.federation.checkpoint import SUFFIX, Saved, new_states, save_checkpoint
from fedfuse.federation.events import EventLog
from fedfuse.federation.folder import RunFolder

LEAST_SECONDS = 1.0
"""Between two checkpoints that nobody asked for: what a crash costs at most, and far more than one takes to write."""
Stop = Callable[[RoundRecord], bool]
"""Whether a run shall stop after a round, unfinished."""


class Play:
    """One process's rounds of a run."""

    def __init__(
        self,
        built: Built,
        folder: RunFolder,
        log: EventLog,
        nodes_keep_states: bool = False,
        stop: Stop | None = None,
        sketches: Sketches | None = None,
    ) -> None:
        """``nodes_keep_states``: those of the latest rounds only, so that every round needs its checkpoint."""
        self.config, self.federation = built.config, built.federation
        self.folder, self.log, self.stop = folder, log, stop
        self.nodes_keep_states, self.sketches = nodes_keep_states, sketches
        self.keeping = Keeping(built, folder)
        self.watch = watch_of(built.config, built.judged_on) if built.config.evaluation.judges else None
        self._identity = built.config.of_checkpoints

    def start(self) -> Snapshot:
        """Before the first round."""
        snapshot = replace(self.federation.start(), clients=new_states(self.folder.checkpoints))
        if self.config.recipe.start.is_work:
            self._save(snapshot)
        return snapshot

    def rounds(self, snapshot: Snapshot) -> Snapshot:
        """Until the run is over, or somebody stops it."""
        saved_at, is_stopped = -math.inf, False
        if self.watch:
            for record in snapshot.server.history:
                self.watch.add(record)
        while not is_stopped and not self.log.stop and not self.is_over(snapshot):
            snapshot = self.federation.advance(snapshot)
            self._look(snapshot)
            is_stopped = bool(self.log.stop) or (self.stop is not None and self.stop(snapshot.server.history[-1]))
            if self._is_due(snapshot, time.monotonic() - saved_at) or is_stopped or self.is_over(snapshot):
                self._save(snapshot)
                saved_at = time.monotonic()
            if self.sketches and not self.is_over(snapshot):
                self.sketches.look(snapshot.server.history)
        return snapshot

    def is_over(self, snapshot: Snapshot) -> bool:
        """Whether no more rounds are wanted."""
        if self.watch and self.watch.is_out_of_patience:
            return True
        target = self.config.evaluation.target_accuracy
        if self.config.evaluation.stop_at_target and target and snapshot.server.history.all_reached(target):
            return True
        last = snapshot.server.history[-1] if snapshot.server.history else None
        if last is not None and last.privacy is not None and last.privacy.left == 0:
            return True  # nobody has budget for another round
        return snapshot.server.round >= self.config.federation.rounds

    def _look(self, snapshot: Snapshot) -> None:
        """Judge the round that was just played, and keep its models if it is the best so far."""
        if self.watch is None:
            return
        record = snapshot.server.history[-1]
        self.watch.add(record)
        if self.config.evaluation.keep_best and self.watch.best_until(record.round) == record.round:
            self.keeping.best(snapshot)

    def _is_due(self, snapshot: Snapshot, seconds: float) -> bool:
        """Whether it is time for a checkpoint, so many seconds after the last one."""
        every = self.config.federation.checkpoint_every
        if every != "auto":
            return snapshot.server.round % every == 0
        return seconds >= LEAST_SECONDS or self.nodes_keep_states

    def _save(self, snapshot: Snapshot) -> None:
        save_checkpoint(self.folder.checkpoints, Saved(snapshot, self.log.mark()), self._identity)
        if self.watch and self.config.evaluation.keep_best:
            saved = rounds_in(self.folder.checkpoints, SUFFIX)
            self.keeping.keep_best([self.watch.best_until(number) for number in saved])
