"""Finished runs by their content: reproduction/runs/<hash of the config with its seed>.

A run is never made twice, whichever table asks for it, and an interrupted one goes on where it stopped.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import fmean
from typing import Any

from fedfuse.core.origin import Origin
from fedfuse.experiment.assembly import cautions
from fedfuse.experiment.comparison import Cell as Run
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.experiment.run import Experiment
from fedfuse.federation import RoundRecord
from fedfuse.federation.events import read_events
from fedfuse.federation.folder import RunFolder
from fedfuse.reproduce.cells import Cell
from fedfuse.reproduce.entry import Reading

HASH_LENGTH = 20


@dataclass(frozen=True)
class Measured:
    """One seed's number; ``is_bound``: the target was not reached, and the number of rounds is a lower bound."""

    value: float
    is_bound: bool = False


@dataclass(frozen=True)
class Provenance:
    """One start of a run."""

    day: str
    origin: Origin


@dataclass(frozen=True)
class Store:
    """The folder of all results."""

    path: Path

    def folder(self, config: ExperimentConfig) -> RunFolder:
        return RunFolder(self.path / "runs" / config.sha256()[:HASH_LENGTH])

    def births(self, config: ExperimentConfig) -> list[Provenance]:
        """When, with which code and where a run was begun and gone on with."""
        events = read_events(self.folder(config).events)
        starts = (entry for entry in events if entry["event"] in ("run_started", "run_resumed"))
        return [
            Provenance(date.fromtimestamp(entry["time"]).isoformat(), Origin(**entry["origin"])) for entry in starts
        ]

    def cautions(self, config: ExperimentConfig) -> list[str]:
        """What the facts of a finished run say that a reader of its number should know."""
        return cautions(self.folder(config).read_summary())

    def runs(self, cells: list[Cell], seeds: list[int]) -> list[Run]:
        """The runs behind some cells, each once."""
        configs: dict[str, ExperimentConfig] = {}
        for config in (cell.config(seed) for cell in cells for seed in seeds):
            configs.setdefault(config.sha256(), config)
        return [Run(Experiment(config), self.folder(config)) for config in configs.values()]

    def measure(self, cell: Cell, seed: int) -> Measured | None:
        """What a cell shows of one seed, or None if that run is not finished."""
        config = cell.config(seed)
        folder = self.folder(config)
        if not folder.is_complete():
            return None
        return read(cell.reading, folder.read_summary(), history(folder))

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


def history(folder: RunFolder) -> list[RoundRecord]:
    """All rounds of a finished run, from its log."""
    return [_record(entry) for entry in read_events(folder.events) if entry["event"] == "round_finished"]


def _record(entry: dict[str, Any]) -> RoundRecord:
    return RoundRecord.from_json({key: value for key, value in entry.items() if key not in ("event", "time")})


def read(reading: Reading, summary: dict[str, Any], rounds: list[RoundRecord]) -> Measured | None:
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
