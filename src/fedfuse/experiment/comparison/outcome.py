"""What the runs of a comparison say together: a row per method and prototype, written as a table and a picture."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from fedfuse.core.files import write_text
from fedfuse.core.plain_json import dumps
from fedfuse.experiment.comparison.plan import Cell
from fedfuse.experiment.frames import frame_of
from fedfuse.experiment.result import RunResult
from fedfuse.experiment.sheets import MISSING, comparison_facts, comparison_sheet
from fedfuse.federation.summary import SIMULATED, rounds_to, simulated_to
from fedfuse.report.comparison import draw_comparison

ENSEMBLE = "ensemble"
"""What stands in the place of a prototype where the answer of a method is its ensemble's."""

Curve = list[tuple[int, float]]


@dataclass(frozen=True)
class Spread:
    """A number over seeds; one value has no deviation."""

    mean: float
    std: float | None
    values: tuple[float, ...]

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        return Spread(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None, tuple(values))

    @staticmethod
    def of_measured(values: Sequence[float | None]) -> Spread | None:
        """None if some seed did not measure it: the mean of the others would be about other runs."""
        measured = [value for value in values if value is not None]
        return Spread.of(measured) if len(measured) == len(values) else None


@dataclass(frozen=True)
class MetricSpread:
    """A metric over seeds; None if some seed has no value."""

    better: str
    unit: str
    last: Spread | None
    best: Spread | None


@dataclass(frozen=True)
class Row:
    """One prototype of one method on one experiment, over all seeds.

    ``rounds_to_target`` has one entry per seed; None is a seed that never got there. Where not every round was measured
    it may have got there before, in ``rounds_to_target_earliest`` at the earliest.
    """

    experiment: str
    method: str
    prototype: str
    seeds: tuple[int, ...]
    accuracy_last: Spread | None
    accuracy_best: Spread | None
    rounds_to_target: tuple[int | None, ...]
    rounds_to_target_earliest: tuple[int | None, ...]
    bytes_up: Spread
    bytes_down: Spread
    seconds: Spread
    clients_absent: tuple[int, ...]
    clients_late: tuple[int, ...]
    updates_refused: tuple[int, ...]
    clients_screened: tuple[int, ...]
    metrics: Mapping[str, MetricSpread]
    simulated_seconds_to_target: tuple[float | None, ...] | None = None
    """One entry per seed, as ``rounds_to_target``; None without a clock."""
    epsilon: tuple[float | None, ...] | None = None
    """What the client gave away that gave most, one entry per seed; None where no privacy is promised."""

    def records(self) -> Iterator[dict[str, Any]]:
        """Its numbers seed by seed."""
        names = {"experiment": self.experiment, "method": self.method, "model": self.prototype}
        plain = ("seeds", "metrics", *(name for name, value in vars(self).items() if isinstance(value, str)))
        measured = {name: value for name, value in vars(self).items() if name not in plain}
        for name, metric in self.metrics.items():
            measured |= {f"{name}_last": metric.last, f"{name}_best": metric.best}
        for place, seed in enumerate(self.seeds):
            yield {**names, "seed": seed, **{name: _of_seed(place, value) for name, value in measured.items()}}


@dataclass(frozen=True, repr=False)
class Comparison:
    """All rows, and where they were written."""

    rows: tuple[Row, ...]
    target: float | None
    folder: Path
    planned: int
    unfinished: tuple[str, ...]
    """The labels of planned runs that are in no row."""

    @property
    def picture(self) -> Path:
        return self.folder / "comparison.png"

    def records(self) -> list[dict[str, Any]]:
        """The numbers as plain rows, one for every experiment, method, model and seed."""
        return [record for row in self.rows for record in row.records()]

    def to_frame(self) -> Any:
        """The same as a pandas data frame."""
        return frame_of(self.records())

    def __repr__(self) -> str:
        facts = (f"{name:8} {value}" for name, value in comparison_facts(self).items())
        return "\n".join([comparison_sheet(self).text(), "", *facts])

    def _repr_html_(self) -> str:
        facts = "<br>".join(escape(f"{name} {value}") for name, value in comparison_facts(self).items())
        return f"{comparison_sheet(self).html()}<p>{facts}</p>"


def _of_seed(place: int, value: Spread | tuple[Any, ...] | None) -> Any:
    values = value.values if isinstance(value, Spread) else value
    return None if values is None else values[place]


@dataclass(frozen=True)
class _Line:
    """The runs behind one row. Without a prototype it is about the ensemble, which is then the method's answer."""

    experiment: str
    method: str
    prototype: str | None
    runs: list[RunResult]

    @property
    def curves(self) -> list[Curve]:
        return [_curve(run, self.prototype) for run in self.runs]


def conclude(cells: Sequence[Cell], results: Mapping[Cell, RunResult], folder: Path) -> Comparison:
    """Put the finished runs of a plan together, and write the table and the picture beside them."""
    lines = list(_lines([(cell, results[cell]) for cell in cells if cell in results]))
    targets = {cell.experiment.config.evaluation.target_accuracy for cell in cells}
    comparison = Comparison(
        tuple(map(_row, lines)),
        targets.pop() if len(targets) == 1 else None,
        folder,
        planned=len(cells),
        unfinished=tuple(cell.label for cell in cells if cell not in results),
    )
    record = {
        "target_accuracy": comparison.target,
        "unfinished": comparison.unfinished,
        "rows": [asdict(row) for row in comparison.rows],
    }
    write_text(folder / "comparison.json", dumps(record, indent=2) + "\n")
    draw_comparison(comparison.picture, _labelled(lines), comparison.target, "Test accuracy")
    return comparison


def _lines(finished: Sequence[tuple[Cell, RunResult]]) -> Iterator[_Line]:
    """One per experiment, method and prototype, in the order of the plan."""
    groups: dict[tuple[str, str, bool], list[RunResult]] = {}
    for cell, result in finished:
        config = cell.experiment.config
        groups.setdefault((config.name, config.method.called, config.answers_as_ensemble), []).append(result)
    for (experiment, method, answers_as_ensemble), runs in groups.items():
        for prototype in [None] if answers_as_ensemble else runs[0].summary["prototypes"]:
            yield _Line(experiment, method, prototype, runs)


def _row(line: _Line) -> Row:
    numbers = [_numbers(run, line.prototype) for run in line.runs]
    summaries = [run.summary for run in line.runs]
    return Row(
        line.experiment,
        line.method,
        line.prototype or ENSEMBLE,
        seeds=tuple(summary["seed"] for summary in summaries),
        accuracy_last=Spread.of_measured([one["accuracy_last"] for one in numbers]),
        accuracy_best=Spread.of_measured([one["accuracy_best"] for one in numbers]),
        rounds_to_target=tuple(one["rounds_to_target"] for one in numbers),
        rounds_to_target_earliest=tuple(one["rounds_to_target_earliest"] for one in numbers),
        bytes_up=Spread.of([summary["bytes_up"] for summary in summaries]),
        bytes_down=Spread.of([summary["bytes_down"] for summary in summaries]),
        seconds=Spread.of([summary["seconds"] for summary in summaries]),
        **{name: tuple(summary.get(name, 0) for summary in summaries) for name in MISSING},
        metrics=_metrics([one["metrics"] for one in numbers]),
        simulated_seconds_to_target=_simulated(line.runs, [one["rounds_to_target"] for one in numbers]),
        epsilon=tuple(run.epsilon for run in line.runs) if "privacy" in summaries[0] else None,
    )


def _simulated(runs: Sequence[RunResult], reached: Sequence[int | None]) -> tuple[float | None, ...] | None:
    """The seconds of the clock until these rounds, if all runs have one."""
    found = [simulated_to(run.history, number) for run, number in zip(runs, reached, strict=True)]
    return tuple(one[SIMULATED] for one in found) if all(found) else None


def _metrics(seeds: Sequence[Mapping[str, Any]]) -> dict[str, MetricSpread]:
    """The metrics that some seed has, in the order of the first that has them."""
    entries = {name: entry for own in reversed(seeds) for name, entry in own.items()}
    return {
        name: MetricSpread(
            entry["better"],
            entry["unit"],
            *(Spread.of_measured([own.get(name, {}).get(what) for own in seeds]) for what in ("last", "best")),
        )
        for name, entry in entries.items()
    }


def _numbers(run: RunResult, prototype: str | None) -> Mapping[str, Any]:
    """A prototype's part of the summary, or the same numbers of the ensemble."""
    if prototype is not None:
        return {"metrics": {}, **run.summary["prototypes"][prototype]}  # runs of older versions have no metrics
    curve = dict(_curve(run, None))
    reached, earliest = rounds_to(curve, run.summary["target_accuracy"])
    return {
        "accuracy_last": next(reversed(curve.values()), None),
        "accuracy_best": max(curve.values(), default=None),
        "rounds_to_target": reached,
        "rounds_to_target_earliest": earliest,
        "metrics": run.summary.get("ensemble_metrics", {}),
    }


def _labelled(lines: Sequence[_Line]) -> dict[str, list[Curve]]:
    """Curves by a name that has no more in it than what tells them apart."""
    several = len({line.experiment for line in lines}) > 1
    rows = Counter((line.experiment, line.method) for line in lines)
    curves = {}
    for line in lines:
        parts = [line.experiment] * several + [line.method]
        parts += [line.prototype or ENSEMBLE] * (rows[line.experiment, line.method] > 1)
        curves[" ".join(parts)] = line.curves
    return curves


def _curve(run: RunResult, prototype: str | None) -> Curve:
    """The accuracy in every round that was measured."""
    measured = [
        (record.round, record.prototypes[prototype].accuracy if prototype else record.ensemble_accuracy)
        for record in run.history
    ]
    return [(number, accuracy) for number, accuracy in measured if accuracy is not None]
