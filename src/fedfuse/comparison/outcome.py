"""What the runs of a comparison say together: a row per method and prototype, written as a table and a picture."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fedfuse.comparison.plan import Cell
from fedfuse.core.files import write_text
from fedfuse.experiment import RunResult
from fedfuse.report.comparison import draw_comparison


@dataclass(frozen=True)
class Spread:
    """A number over seeds."""

    mean: float
    std: float
    values: tuple[float, ...]

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        return Spread(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0, tuple(values))


@dataclass(frozen=True)
class Row:
    """One prototype of one method on one experiment, over all seeds.

    ``rounds_to_target`` has one entry per seed; None is a seed that never got there.
    """

    experiment: str
    method: str
    prototype: str
    accuracy_last: Spread
    accuracy_best: Spread
    rounds_to_target: tuple[int | None, ...]
    bytes_up: Spread
    bytes_down: Spread
    seconds: Spread


@dataclass(frozen=True)
class Comparison:
    """All rows, and where they were written."""

    rows: tuple[Row, ...]
    target: float | None
    folder: Path

    @property
    def picture(self) -> Path:
        return self.folder / "comparison.png"


def conclude(cells: Sequence[Cell], results: Sequence[RunResult], folder: Path) -> Comparison:
    """Put finished runs together, and write the table and the picture beside them."""
    rows = tuple(_rows(cells, results))
    targets = {cell.experiment.config.evaluation.target_accuracy for cell in cells}
    comparison = Comparison(rows, targets.pop() if len(targets) == 1 else None, folder)
    record = {"target_accuracy": comparison.target, "rows": [asdict(row) for row in rows]}
    write_text(folder / "comparison.json", json.dumps(record, indent=2) + "\n")
    draw_comparison(comparison.picture, _curves(cells, results), comparison.target, "Test accuracy")
    return comparison


def _groups(cells: Sequence[Cell], results: Sequence[RunResult]) -> Iterator[tuple[str, str, str, list[RunResult]]]:
    """(experiment, method, prototype, its runs over seeds), in the order of the plan."""
    groups: dict[tuple[str, str], list[RunResult]] = {}
    for cell, result in zip(cells, results, strict=True):
        groups.setdefault((cell.experiment.config.name, cell.experiment.config.method.name), []).append(result)
    for (experiment, method), runs in groups.items():
        for prototype in runs[0].summary["prototypes"]:
            yield experiment, method, prototype, runs


def _rows(cells: Sequence[Cell], results: Sequence[RunResult]) -> Iterator[Row]:
    for experiment, method, prototype, runs in _groups(cells, results):
        own = [run.summary["prototypes"][prototype] for run in runs]
        yield Row(
            experiment,
            method,
            prototype,
            accuracy_last=Spread.of([summary["accuracy_last"] for summary in own]),
            accuracy_best=Spread.of([summary["accuracy_best"] for summary in own]),
            rounds_to_target=tuple(summary["rounds_to_target"] for summary in own),
            bytes_up=Spread.of([run.summary["bytes_up"] for run in runs]),
            bytes_down=Spread.of([run.summary["bytes_down"] for run in runs]),
            seconds=Spread.of([run.summary["seconds"] for run in runs]),
        )


def _curves(cells: Sequence[Cell], results: Sequence[RunResult]) -> dict[str, list[list[tuple[int, float]]]]:
    several = len({cell.experiment.config.name for cell in cells}) > 1
    curves = {}
    for experiment, method, prototype, runs in _groups(cells, results):
        parts = [experiment] if several else []
        parts += [method]
        parts += [prototype] if len(runs[0].summary["prototypes"]) > 1 else []
        curves[" ".join(parts)] = [_curve(run, prototype) for run in runs]
    return curves


def _curve(run: RunResult, prototype: str) -> list[tuple[int, float]]:
    measured = [(record.round, record.prototypes[prototype].accuracy) for record in run.history]
    return [(number, accuracy) for number, accuracy in measured if accuracy is not None]
