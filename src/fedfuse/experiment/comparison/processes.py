"""Runs in processes of their own, several at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from fedfuse.core.errors import NothingLearntError
from fedfuse.core.imports import check_findable_elsewhere
from fedfuse.data.given import handed_over
from fedfuse.experiment.comparison.plan import Cell
from fedfuse.experiment.comparison.run_process import RunProcess
from fedfuse.report.monitor import ROUND, Monitor

POLL_SECONDS = 0.2
PATIENCE = 5.0
"""Seconds in which runs that are asked to end may do so by themselves."""
Rounds = Callable[[Cell, int], None]
"""Told of a run and how many of its rounds are finished."""


def in_processes(cells: Sequence[Cell], jobs: int, started: Rounds, advanced: Rounds) -> Iterator[Cell]:
    """Prepare every folder, then let ``jobs`` processes at a time each finish one; each cell as soon as it is done."""
    for cell in cells:
        check_findable_elsewhere(cell.experiment.config.foreign_code)
    for cell in cells:
        cell.experiment.prepare(cell.folder, resume=cell.keep, overwrite=not cell.keep)
    given = {str(cell.experiment.config.data.path) for cell in cells}
    waiting, running, logs = list(cells), dict[Cell, RunProcess](), {cell: Monitor(cell.folder) for cell in cells}
    with handed_over(given) as environment, _ended_at_last(running):
        while waiting or running:
            while waiting and len(running) < jobs:
                cell = waiting.pop(0)
                running[cell] = RunProcess(cell, environment, alone=jobs == 1)
                started(cell, _finished_rounds(logs[cell]))
            time.sleep(POLL_SECONDS)
            for cell, process in list(running.items()):
                advanced(cell, _finished_rounds(logs[cell]))
                if process.code() is not None:
                    del running[cell]
                    if process.code() not in (0, NothingLearntError.exit_code):
                        yield from _finishing(running.values())
                        raise process.failure()
                    yield cell


@contextmanager
def _ended_at_last(running: Mapping[Cell, RunProcess]) -> Iterator[None]:
    """Whatever happens, no process stays behind."""
    try:
        yield
    finally:
        for process in running.values():
            process.ask_to_end()
        deadline = time.monotonic() + PATIENCE
        for process in running.values():
            process.wait(max(0.0, deadline - time.monotonic()))
            process.end()


def _finishing(running: Iterable[RunProcess]) -> Iterator[Cell]:
    """Runs that have written their last file, once their processes have let go of the folder."""
    for process in running:
        if process.cell.folder.is_complete():
            process.wait()
            yield process.cell


def _finished_rounds(log: Monitor) -> int:
    return log.look().events[ROUND]
