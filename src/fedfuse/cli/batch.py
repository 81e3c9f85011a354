"""Many runs, one after another in this process or several at a time in processes of their own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.progress import TaskID

from fedfuse.cli.progress import Bars, Cautions, RunProgress
from fedfuse.core.errors import FedfuseError
from fedfuse.experiment.comparison import Cell
from fedfuse.experiment.run import RunResult

POLL_SECONDS = 0.2


def run_all(cells: Sequence[Cell], jobs: int, console: Console) -> dict[Cell, RunResult]:
    """The results of all cells."""
    return dict(finished_runs(cells, jobs, console))


def finished_runs(cells: Sequence[Cell], jobs: int, console: Console) -> Iterator[tuple[Cell, RunResult]]:
    """Each cell with its result as soon as there is one, those that are finished already first."""
    there = [cell for cell in cells if cell.keep and cell.folder.is_complete()]
    left = [cell for cell in cells if cell not in there]
    caution = Cautions(console)
    yield from ((cell, _read(cell, caution)) for cell in there)
    if jobs == 1:
        with RunProgress(console, len(cells), len(there), caution) as progress:
            for cell in left:
                yield cell, _run(cell, progress)
    else:
        for cell in _run_processes(left, jobs, console):
            yield cell, _read(cell, caution)


def _read(cell: Cell, caution: Cautions) -> RunResult:
    """A finished run is not run again, but read."""
    result = cell.experiment.run(cell.folder.path, resume=True)
    caution(result.summary)
    return result


def _run(cell: Cell, progress: RunProgress) -> RunResult:
    progress.begin(cell.label, cell.experiment.config.federation.rounds)
    result = cell.experiment.run(cell.folder.path, resume=cell.keep, overwrite=not cell.keep, listeners=(progress,))
    progress.end()
    return result


def _run_processes(cells: Sequence[Cell], jobs: int, console: Console) -> Iterator[Cell]:
    """Prepare every folder, then let ``jobs`` processes at a time each finish one."""
    for cell in cells:
        cell.experiment.prepare(cell.folder, resume=cell.keep, overwrite=not cell.keep)
    waiting, running = list(cells), dict[int, tuple[Cell, subprocess.Popen[str]]]()
    try:
        with Bars(console) as bars:
            all_runs, tasks = bars.begin("runs", len(cells)), dict[int, TaskID]()
            while waiting or running:
                while waiting and len(running) < jobs:
                    cell = waiting.pop(0)
                    running[id(cell)] = (cell, _start(cell))
                    rounds = cell.experiment.config.federation.rounds
                    tasks[id(cell)] = bars.begin("  rounds", rounds, _finished_rounds(cell), title=cell.label)
                time.sleep(POLL_SECONDS)
                for identity, (cell, process) in list(running.items()):
                    bars.update(tasks[identity], completed=_finished_rounds(cell))
                    if process.poll() is not None:
                        del running[identity]
                        bars.remove_task(tasks[identity])
                        if process.returncode != 0:
                            yield from _finishing(running.values())
                            raise _failure(cell, process)
                        bars.advance(all_runs)
                        if not console.is_terminal:
                            console.print(f"{cell.label}: finished", highlight=False, soft_wrap=True)
                        yield cell
    finally:
        for _, process in running.values():
            process.terminate()
        for _, process in running.values():
            process.wait()


def _finishing(running: Iterable[tuple[Cell, subprocess.Popen[str]]]) -> Iterator[Cell]:
    """Runs that have written their last file, once their processes have let go of the folder."""
    for cell, process in running:
        if cell.folder.is_complete():
            process.wait()
            yield cell


def _start(cell: Cell) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "fedfuse", "run", str(cell.folder.path), "--resume", "--quiet"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _finished_rounds(cell: Cell) -> int:
    if not cell.folder.events.exists():
        return 0
    with cell.folder.events.open(encoding="utf-8") as lines:
        return sum('"event": "round_finished"' in line for line in lines)


def _failure(cell: Cell, process: subprocess.Popen[str]) -> FedfuseError:
    message = process.stderr.read().strip() if process.stderr else ""
    return FedfuseError(f"{cell.label}: {message.removeprefix('fedfuse: ') or f'ended with {process.returncode}'}")
