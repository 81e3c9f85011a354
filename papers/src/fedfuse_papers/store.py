"""Finished runs by their content: reproduction/runs/<hash of the config with its seed>.

A run is never made twice, whichever table asks for it, and an interrupted one goes on where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from fedfuse import Experiment, RoundRecord, RunResult, load_run
from fedfuse_papers.cells import Cell
from fedfuse_papers.entry import Reading

HASH_LENGTH = 20


@dataclass(frozen=True)
class Measured:
    """One seed's number; ``is_bound``: the target was not reached, and the number of rounds is a lower bound."""

    value: float
    is_bound: bool = False


@dataclass(frozen=True)
class Store:
    """The folder of all results."""

    path: Path

    @property
    def speed(self) -> Path:
        """The benchmark of this machine."""
        return self.path / "speed.json"

    def folder(self, experiment: Experiment) -> Path:
        return self.path / "runs" / experiment.config.sha256()[:HASH_LENGTH]

    def run(self, cell: Cell, seed: int) -> RunResult | None:
        """A finished run."""
        folder = self.folder(cell.experiment(seed))
        return load_run(folder) if is_finished(folder) else None

    def runs(self, cells: Sequence[Cell], seeds: Sequence[int]) -> dict[Path, Experiment]:
        """The runs behind some cells, each once, by their folders."""
        runs: dict[Path, Experiment] = {}
        for experiment in (cell.experiment(seed) for cell in cells for seed in seeds):
            runs.setdefault(self.folder(experiment), experiment)
        return runs

    def measure(self, cell: Cell, seed: int) -> Measured | None:
        """What a cell shows of one seed, or None if that run is not finished."""
        run = self.run(cell, seed)
        return read(cell.reading, run.summary, run.history) if run else None

    def table(self, name: str, scale: str, suffix: str) -> Path:
        """Where a table or picture is written."""
        return self.path / "tables" / f"{name.replace('/', '-')}-{scale}{suffix}"

    def last(self, name: str, scale: str) -> dict[str, Any] | None:
        """The record of the last table, if there is one."""
        record = self.table(name, scale, ".json")
        return json.loads(record.read_text(encoding="utf-8")) if record.exists() else None


def finished_cells(last: dict[str, Any]) -> int:
    """How many cells of a table's record have all their seeds."""
    return sum(len(row["values"]) == len(last["seeds"]) for row in last["rows"])


def is_finished(folder: Path) -> bool:
    """A run writes its summary last."""
    return (folder / "summary.json").exists()


def read(reading: Reading, summary: dict[str, Any], rounds: Sequence[RoundRecord]) -> Measured | None:
    """One number of one run: accuracies in percent, or rounds. None if the run did not measure it."""
    model = reading.model or list(summary["prototypes"])[-1]
    own = summary["prototypes"][model]
    if reading.what == "rounds_to_target":
        reached = own["rounds_to_target"]
        return Measured(summary["rounds"], is_bound=True) if reached is None else Measured(reached)
    if reading.what == "best":
        return _percent(own["accuracy_best"])
    number = max(1, round((reading.at or 1) * len(rounds)))
    # The first measured round from there on; the last round always is measured.
    record = next(record for record in rounds[number - 1 :] if record.prototypes[model].accuracy is not None)
    if reading.what == "ensemble":
        return _percent(record.ensemble_accuracy)
    if reading.what == "clients":
        latest = {c: own for r in rounds if r.round <= record.round for c, own in r.client_accuracy.items()}
        return _percent(fmean(latest.values()) if latest else None)
    prototype = record.prototypes[model]
    return _percent(prototype.accuracy if reading.what == "last" else prototype.accuracy_before_fusion)


def _percent(accuracy: float | None) -> Measured | None:
    return None if accuracy is None else Measured(100 * accuracy)
