"""Runs in processes of their own, several at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

from fedfuse.core.errors import FedfuseError, NothingLearntError
from fedfuse.core.imports import check_findable_elsewhere
from fedfuse.data.given import handed_over
from fedfuse.experiment.comparison.plan import Cell
from fedfuse.experiment.comparison.run_process import RunProcess
from fedfuse.report.monitor import ROUND, Counts, Monitor

POLL_SECONDS = 0.2
PATIENCE = 5.0
"""Seconds in which runs that are asked to end may do so by themselves."""
Rounds = Callable[[Cell, int], None]
"""Told of a run and how many of its rounds are finished."""
Advanced = Callable[[Cell, Counts], None]
"""Told of a run and what its log says."""


def in_processes(cells: Sequence[Cell], jobs: int, started: Rounds, advanced: Advanced) -> Iterator[Cell]:
    """Prepare every folder, then let ``jobs`` processes at a time each finish one; each cell as soon as it is done."""
    for cell in cells:
        check_findable_elsewhere(cell.experiment.config.foreign_code)
    for cell in cells:
        cell.experiment.prepare(cell.folder, resume=cell.keep, overwrite=not cell.keep)
    given, waiting = {str(cell.experiment.config.data.path) for cell in cells}, list(cells)
    with handed_over(given) as environment, Processes(environment, alone=jobs == 1) as runs:
        while waiting or runs.running:
            while waiting and len(runs.running) < jobs:
                cell = waiting.pop(0)
                started(cell, runs.start(cell))
            runs.wait()
            for cell in runs.running:
                advanced(cell, runs.counts(cell))
            for cell, failure in runs.ended():
                if failure is not None:
                    yield from runs.finishing()
                    raise failure
                yield cell


class Processes:
    """Those that run now, each on a folder that is prepared; whatever happens, none stays behind."""

    def __init__(self, environment: Mapping[str, str], alone: bool = False) -> None:
        """``alone``: no run has another one beside it."""
        self.environment, self.alone = environment, alone
        self.running: dict[Cell, RunProcess] = {}
        self._logs: dict[Cell, Monitor] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: type[BaseException] | BaseException | TracebackType | None) -> None:
        for process in self.running.values():
            process.ask_to_end()
        deadline = time.monotonic() + PATIENCE
        for process in self.running.values():
            process.wait(max(0.0, deadline - time.monotonic()))
            process.end()

    def start(self, cell: Cell) -> int:
        """One more; how many of its rounds are finished already."""
        self._logs[cell] = Monitor(cell.folder)
        self.running[cell] = RunProcess(cell, self.environment, self.alone)
        return self.rounds(cell)

    def rounds(self, cell: Cell) -> int:
        """How many are finished, as its log says."""
        return self.counts(cell).events[ROUND]

    def counts(self, cell: Cell) -> Counts:
        """All that its log says."""
        return self._logs[cell].look()

    def wait(self) -> None:
        """A moment."""
        time.sleep(POLL_SECONDS)

    def stop(self, cell: Cell) -> None:
        """Ask a run to end; its finished rounds are kept."""
        self.running[cell].ask_to_end()

    def ended(self) -> Iterator[tuple[Cell, FedfuseError | None]]:
        """Those that have ended since, and why, if not because they were done."""
        for cell, process in list(self.running.items()):
            if process.code() is not None:
                del self.running[cell]
                is_done = process.code() in (0, NothingLearntError.exit_code)
                yield cell, None if is_done else process.failure()

    def finishing(self) -> Iterator[Cell]:
        """Runs that have written their last file, once their processes have let go of the folder."""
        for cell, process in self.running.items():
            if cell.folder.is_complete():
                process.wait()
                yield cell
