"""The runs of a comparison: finished ones are read, the others run here or in processes of their own.

Listeners hear ``study_run_found`` of what is read, ``study_started``, and of each run ``study_run_started``, its own
events or ``study_run_advanced``, and ``study_run_finished``; at last ``study_concluded``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fedfuse.core.errors import StopRun
from fedfuse.experiment.comparison.outcome import conclude
from fedfuse.experiment.comparison.plan import Cell
from fedfuse.experiment.comparison.processes import in_processes
from fedfuse.experiment.looking.comparison import Comparison
from fedfuse.experiment.result import RunResult
from fedfuse.federation.events import Event, Listener
from fedfuse.report.monitor import ROUND, Counts


def silence(_event: Event) -> None:
    """A listener that does nothing."""


def complete(
    cells: Sequence[Cell], jobs: int = 1, listener: Listener = silence, folder: Path | None = None
) -> Comparison:
    """Run what is not finished and put everything together; after a failure, too, what was finished until then.

    ``folder`` is where that is written, if not beside the first run.
    """
    results: dict[Cell, RunResult] = {}
    try:
        results.update(finished_runs(cells, jobs, listener))
    except StopRun:
        if not results:
            raise
    finally:
        if results:
            comparison = conclude(cells, results, folder or cells[0].folder.path.parent)
            with suppress(StopRun):  # there is nothing left to stop
                listener({"event": "study_concluded", "comparison": comparison})
    return comparison


def finished_runs(
    cells: Sequence[Cell], jobs: int = 1, listener: Listener = silence
) -> Iterator[tuple[Cell, RunResult]]:
    """Each cell with its result as soon as there is one, those that are finished already first."""
    there = [cell for cell in cells if cell.is_finished]
    left = [cell for cell in cells if cell not in there]
    for cell in there:
        result = _read(cell)
        listener({"event": "study_run_found", "run": cell.label, "summary": result.summary})
        yield cell, result
    listener({"event": "study_started", "runs": len(cells), "finished": len(there)})
    yield from _one_by_one(left, listener) if jobs == 1 else _side_by_side(left, jobs, listener)


def _one_by_one(cells: Sequence[Cell], listener: Listener) -> Iterator[tuple[Cell, RunResult]]:
    for cell in cells:
        listener(told_of(cell, "study_run_started", rounds=cell.experiment.config.federation.rounds, done=0))
        result = _run(cell, listener)
        if not result.is_finished:  # a listener had enough, and means all that was to come
            raise StopRun(result.stopped)
        listener(told_of(cell, "study_run_finished", summary=result.summary))
        yield cell, result


def _side_by_side(cells: Sequence[Cell], jobs: int, listener: Listener) -> Iterator[tuple[Cell, RunResult]]:
    def started(cell: Cell, done: int) -> None:
        listener(told_of(cell, "study_run_started", rounds=cell.experiment.config.federation.rounds, done=done))

    def advanced(cell: Cell, counts: Counts) -> None:
        listener(told_of(cell, "study_run_advanced", done=counts.events[ROUND], latest=counts.last))

    for cell in in_processes(cells, jobs, started, advanced):
        result = _read(cell)
        listener(told_of(cell, "study_run_finished", summary=result.summary))
        yield cell, result


def _run(cell: Cell, listener: Listener) -> RunResult:
    return cell.experiment.run(
        cell.folder.path, resume=cell.keep, overwrite=not cell.keep, listeners=(named(cell, listener),)
    )


def _read(cell: Cell) -> RunResult:
    """A finished run is not run again, but read."""
    return cell.experiment.run(cell.folder.path, resume=True)


def told_of(cell: Cell, event: str, **fields: Any) -> Event:
    """What listeners hear of a run."""
    return {"event": event, "run": cell.label, **fields}


def named(cell: Cell, listener: Listener) -> Listener:
    """A listener who is told whose events they are."""
    return lambda event: listener({**event, "run": cell.label})
