"""Runs that lie in folders, read and put side by side; nothing is run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from fedfuse.core.errors import FedfuseError, RunFolderError
from fedfuse.experiment.looking.comparison import Comparison, compared
from fedfuse.experiment.looking.folders import run_folders
from fedfuse.experiment.looking.stored_run import StoredRun, read_stored


def load_runs(*places: str | Path) -> Comparison:
    """The runs in folders, or below them, side by side: a row for each method and model, over all seeds.

    Finished, unfinished and running ones are read, without their data and without any code that they name. A folder
    that cannot be read is left out, and ``unreadable`` says why. Without a folder it is ``runs``.

    >>> short = {"federation": {"rounds": 1}, "training": {"epochs": 1}, "evaluation": {"pictures": False}}
    >>> comparison = fedfuse.compare("digits", ["fedavg", "fedprox"], out="runs/two", **short)
    >>> fedfuse.load_runs("runs/two").rows == comparison.rows
    True
    """
    runs: list[StoredRun] = []
    unreadable: list[str] = []
    folders = run_folders(places or ["runs"])
    for folder in folders:
        try:
            runs.append(read_stored(folder))
        except (FedfuseError, OSError) as error:
            unreadable.append(sentence_about(error, folder.path))
    if not runs:
        raise RunFolderError(unreadable[0])
    return side_by_side(runs, len(folders), unreadable)


def side_by_side(runs: Sequence[StoredRun], planned: int, unreadable: Sequence[str]) -> Comparison:
    """Runs of any states, of so many folders."""
    unfinished = [run.label for run in runs if not run.result.is_finished]
    return compared(runs, _above([run.folder.path for run in runs]), planned, unfinished, unreadable)


def sentence_about(error: FedfuseError | OSError, folder: Path) -> str:
    """Why a folder cannot be read."""
    if isinstance(error, OSError):
        return f"{error.filename or folder}: {error.strerror or error}"
    return str(error)


def _above(folders: Sequence[Path]) -> Path:
    """The nearest folder that all of them are in, as they were named; of one run, the folder above it."""
    named = folders if len({folder.is_absolute() for folder in folders}) == 1 else [path.absolute() for path in folders]
    return Path(os.path.commonpath([path.parent for path in named]) or ".")
