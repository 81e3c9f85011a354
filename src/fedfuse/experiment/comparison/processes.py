"""Runs in processes of their own, several at a time."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from fedfuse.core.errors import FedfuseError, NothingLearntError
from fedfuse.core.imports import check_findable_elsewhere
from fedfuse.data.given import handed_over
from fedfuse.experiment.comparison.plan import Cell

POLL_SECONDS = 0.2
Rounds = Callable[[Cell, int], None]
"""Told of a run and how many of its rounds are finished."""


def in_processes(cells: Sequence[Cell], jobs: int, started: Rounds, advanced: Rounds) -> Iterator[Cell]:
    """Prepare every folder, then let ``jobs`` processes at a time each finish one; each cell as soon as it is done."""
    for cell in cells:
        check_findable_elsewhere(cell.experiment.config.foreign_code)
    for cell in cells:
        cell.experiment.prepare(cell.folder, resume=cell.keep, overwrite=not cell.keep)
    given = {str(cell.experiment.config.data.path) for cell in cells}
    waiting, running = list(cells), dict[Cell, subprocess.Popen[str]]()
    with handed_over(given) as environment, _ended_at_last(running):
        while waiting or running:
            while waiting and len(running) < jobs:
                cell = waiting.pop(0)
                running[cell] = _start(cell, environment, alone=jobs == 1)
                started(cell, _finished_rounds(cell))
            time.sleep(POLL_SECONDS)
            for cell, process in list(running.items()):
                advanced(cell, _finished_rounds(cell))
                if process.poll() is not None:
                    del running[cell]
                    if process.returncode not in (0, NothingLearntError.exit_code):
                        yield from _finishing(running.items())
                        raise _failure(cell, process)
                    yield cell


@contextmanager
def _ended_at_last(running: Mapping[Cell, subprocess.Popen[str]]) -> Iterator[None]:
    """Whatever happens, no process stays behind."""
    try:
        yield
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()


def _finishing(running: Iterable[tuple[Cell, subprocess.Popen[str]]]) -> Iterator[Cell]:
    """Runs that have written their last file, once their processes have let go of the folder."""
    for cell, process in running:
        if cell.folder.is_complete():
            process.wait()
            yield cell


def _start(cell: Cell, environment: Mapping[str, str], alone: bool) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "fedfuse", "run", str(cell.folder.path), "--resume", "--quiet"]
    if not alone and getattr(cell.experiment.config.engine, "workers", None) == "auto":
        command += ["--workers", "1"]  # the runs beside it have the other cores
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)


def _finished_rounds(cell: Cell) -> int:
    if not cell.folder.events.exists():
        return 0
    with cell.folder.events.open(encoding="utf-8") as lines:
        return sum('"event": "round_finished"' in line for line in lines)


def _failure(cell: Cell, process: subprocess.Popen[str]) -> FedfuseError:
    message = process.stderr.read().strip() if process.stderr else ""
    return FedfuseError(f"{cell.label}: {message.removeprefix('fedfuse: ') or f'ended with {process.returncode}'}")
