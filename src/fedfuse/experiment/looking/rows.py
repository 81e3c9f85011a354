"""A row of a comparison: what the runs of one line came to, over their seeds."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedfuse.experiment.looking.curves import curve
from fedfuse.experiment.looking.grouping import Line
from fedfuse.experiment.looking.labels import ENSEMBLE
from fedfuse.experiment.looking.stored_run import StoredRun
from fedfuse.experiment.sheets import MISSING
from fedfuse.federation.summary import SIMULATED, rounds_to, simulated_to
from fedfuse.report.intervals import Interval


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
        return Spread.of(measured) if measured and len(measured) == len(values) else None

    @property
    def interval(self) -> Interval:
        """The mean with its 95 % interval."""
        return Interval.of(self.values)


@dataclass(frozen=True)
class MetricSpread:
    """A metric over seeds; None if some seed has no value."""

    better: str | None
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
    variant: str = ""
    """What tells it from other rows of this experiment and method."""
    title: str = ""
    """What papers call the method."""
    rounds: tuple[int, ...] = ()
    """One entry per seed."""
    accuracy_before_fusion: Spread | None = None
    ensemble_accuracy: Spread | None = None
    loss_last: Spread | None = None
    simulated_seconds: Spread | None = None
    epsilon: tuple[float | None, ...] | None = None
    """What the client gave away that gave most, one entry per seed; None where no privacy is promised."""
    parameters: int | None = None
    is_finished: bool = True

    def records(self) -> Iterator[dict[str, Any]]:
        """Its numbers seed by seed."""
        names = {"experiment": self.experiment, "method": self.method, "variant": self.variant, "model": self.prototype}
        plain = ("seeds", "metrics", "parameters", "is_finished")
        texts = [name for name, value in vars(self).items() if isinstance(value, str)]
        measured = {name: value for name, value in vars(self).items() if name not in (*plain, *texts)}
        for name, metric in self.metrics.items():
            measured |= {f"{name}_last": metric.last, f"{name}_best": metric.best}
        for place, seed in enumerate(self.seeds):
            yield {**names, "seed": seed, **{name: _of_seed(place, value) for name, value in measured.items()}}


def _of_seed(place: int, value: Spread | tuple[Any, ...] | None) -> Any:
    values = value.values if isinstance(value, Spread) else value
    return None if values is None else values[place]


def row_of(line: Line) -> Row:
    numbers = [numbers_of(run, line.prototype) for run in line.runs]
    summaries = [run.summary for run in line.runs]
    before = [one["accuracy_before_fusion"] for one in numbers]
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
        variant=line.variant,
        title=line.title,
        rounds=tuple(summary["rounds"] for summary in summaries),
        accuracy_before_fusion=Spread.of_measured(before),
        ensemble_accuracy=Spread.of_measured([one["ensemble_accuracy"] for one in numbers]),
        loss_last=Spread.of_measured([one["loss_last"] for one in numbers]),
        simulated_seconds=Spread.of_measured([summary.get("simulated_seconds") for summary in summaries]),
        epsilon=tuple(run.result.epsilon for run in line.runs) if "privacy" in summaries[0] else None,
        parameters=numbers[0]["parameters"],
        is_finished=line.is_finished,
    )


def _simulated(runs: Sequence[StoredRun], reached: Sequence[int | None]) -> tuple[float | None, ...] | None:
    """The seconds of the clock until these rounds, if all runs have one."""
    found = [simulated_to(run.result.history, number) for run, number in zip(runs, reached, strict=True)]
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


def numbers_of(run: StoredRun, prototype: str | None) -> Mapping[str, Any]:
    """A prototype's part of the summary, or the same numbers of the ensemble."""
    if prototype is not None:
        return {"metrics": {}, **run.summary["prototypes"][prototype]}  # runs of older versions have no metrics
    measured = {record.round: value for record, value in curve(run, None)}
    reached, earliest = rounds_to(measured, run.summary["target_accuracy"])
    last = next(reversed(measured.values()), None)
    return {
        "accuracy_last": last,
        "accuracy_best": max(measured.values(), default=None),
        "rounds_to_target": reached,
        "rounds_to_target_earliest": earliest,
        "metrics": run.summary.get("ensemble_metrics", {}),
        "accuracy_before_fusion": None,
        "ensemble_accuracy": last,
        "loss_last": None,
        "parameters": None,
    }
