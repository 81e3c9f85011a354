"""A run in one record: what other tools read from ``summary.json``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedfuse.federation.judging import Watch
from fedfuse.federation.state import RoundRecord, ServerState
from fedfuse.parts.metrics import Better, Metric, Unit
from fedfuse.runtime.evaluate import Values

FORMAT = 1
SIMULATED = "simulated_seconds_to_target"
ANSWERS_AS_ENSEMBLE = "answers_as_ensemble"
"""True in the summary of a run whose result is the accuracy of its ensemble; else it is not there."""


@dataclass(frozen=True)
class MetricFacts:
    """How to read a metric; of one whose code is not at hand, which value is better is not known."""

    called: str
    better: Better | None
    unit: Unit


def summarise(
    state: ServerState,
    about: Mapping[str, Any],
    target: float | None,
    server_models: bool = True,
    metrics: Sequence[Metric] = (),
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Last, best, before and after fusion, rounds to target, bytes and seconds. ``about`` opens the record.

    Without models on the server, a prototype's accuracy is the mean of the clients' own models.
    """
    models = {
        name: {
            "parameters": weights.layout.parameter_count,
            "weights_sha256": weights.sha256() if server_models else None,
        }
        for name, weights in state.weights.items()
    }
    facts = [MetricFacts(metric.called, metric.better, metric.unit) for metric in metrics]
    summary = summarise_rounds(state.history, models, about, target, server_models, facts)
    return {**summary, **(_best(state.history, watch) if watch else {})}


def summarise_rounds(
    history: Sequence[RoundRecord],
    models: Mapping[str, Mapping[str, Any]],
    about: Mapping[str, Any],
    target: float | None,
    server_models: bool = True,
    metrics: Sequence[MetricFacts] = (),
) -> dict[str, Any]:
    """The same from the records alone; ``models`` are what is known of each prototype besides."""
    clients = {client: accuracy for record in history for client, accuracy in record.client_accuracy.items()}
    joined = {client: name for record in history for client, name in record.joined.items()}
    return {
        "format": FORMAT,
        **about,
        "rounds": len(history),
        "target_accuracy": target,
        "server_models": server_models,
        "prototypes": {
            name: {**_prototype(history, name, target), **known, **_metrics_of(history, name, metrics)}
            for name, known in models.items()
        },
        "ensemble_metrics": over_rounds(metrics, {record.round: record.ensemble_metrics for record in history}),
        "client_accuracy": {str(client): clients[client] for client in sorted(clients)},
        "bytes_up": sum(record.bytes_up for record in history),
        "bytes_down": sum(record.bytes_down for record in history),
        **_attendance(history),
        "untaught": untaught(history, models) if server_models else [],
        **({"joined": {str(client): name for client, name in joined.items()}} if joined else {}),
        "seconds": round(sum(record.seconds for record in history), 3),
        **_simulated(history),
    }


def _best(history: Sequence[RoundRecord], watch: Watch) -> dict[str, Any]:
    """The best round, by what it was judged so, and what its models had on the test split."""
    if not watch.best:
        return {"best": None}
    number, value = watch.best[-1]
    judge, models = watch.judge, history[number - 1].prototypes
    return {
        "best": {
            "round": number,
            "by": judge.by,
            "on": judge.on,
            "value": value,
            "accuracy": {name: own.accuracy for name, own in models.items()},
            "ran_out_of_patience": watch.is_out_of_patience,
        }
    }


def _attendance(history: Sequence[RoundRecord]) -> dict[str, int]:
    """Over all rounds: updates that counted, and what became of the others, each by the one word that fits."""
    return {
        "updates_counted": sum(len(record.heard.difference(record.screened)) for record in history),
        "updates_refused": sum(len(record.refused) for record in history),
        "clients_absent": sum(len(record.absent) for record in history),
        "clients_late": sum(len(record.late) for record in history),
        "clients_screened": sum(len(record.screened) for record in history),
        "claims_bounded": sum(len(record.claims_bounded) for record in history),
        "moves_bounded": sum(len(record.moves_bounded) for record in history),
        "rounds_in_vain": sum(not record.heard for record in history),
    }


def untaught(history: Sequence[RoundRecord], models: Iterable[str]) -> list[str]:
    """The prototypes whose weights are still those of the start."""
    return [name for name in models if all(record.prototypes[name].untaught for record in history)]


def _simulated(history: Sequence[RoundRecord]) -> dict[str, Any]:
    """What the clock says of all rounds, if there is one."""
    clocks = [record.clock for record in history if record.clock]
    if not clocks:
        return {}
    return {
        "simulated_seconds": clocks[-1].total,
        "clients_left": sum(len(clock.left) for clock in clocks),
    }


def _prototype(history: Sequence[RoundRecord], name: str, target: float | None) -> dict[str, Any]:
    measured = [record for record in history if record.prototypes[name].accuracy is not None]
    accuracy = {record.round: record.prototypes[name].accuracy or 0.0 for record in measured}
    best = max(accuracy, key=lambda number: (accuracy[number], -number), default=None)
    last = measured[-1].prototypes[name] if measured else None
    reached, earliest = rounds_to(accuracy, target)
    return {
        "accuracy_last": last.accuracy if last else None,
        "accuracy_best": accuracy[best] if best else None,
        "round_of_best": best,
        "accuracy_before_fusion": last.accuracy_before_fusion if last else None,
        "accuracy_after_fusion": last.accuracy if last else None,
        "ensemble_accuracy": measured[-1].ensemble_accuracy if measured else None,
        "rounds_to_target": reached,
        "rounds_to_target_earliest": earliest,
        **simulated_to(history, reached),
        "loss_last": last.loss if last else None,
    }


def _metrics_of(history: Sequence[RoundRecord], name: str, metrics: Sequence[MetricFacts]) -> dict[str, Any]:
    own = {record.round: record.prototypes[name] for record in history}
    before = [entry.metrics_before_fusion for entry in own.values() if entry.metrics]
    return {
        "metrics": over_rounds(metrics, {number: entry.metrics for number, entry in own.items()}),
        "metrics_before_fusion": before[-1] if before else {},
    }


def over_rounds(metrics: Sequence[MetricFacts], rounds: Mapping[int, Values]) -> dict[str, dict[str, Any]]:
    """Of every value that the metrics have, the last and the best; None where there was none."""
    by_name = {metric.called: metric for metric in metrics}
    names = dict.fromkeys(name for values in rounds.values() for name in values)
    unknown = MetricFacts("", None, "number")
    return {name: _over_rounds(by_name.get(name.partition(".")[0], unknown), name, rounds) for name in names}


def _over_rounds(metric: MetricFacts, name: str, rounds: Mapping[int, Values]) -> dict[str, Any]:
    measured = {number: values.get(name) for number, values in rounds.items() if values}
    there = {number: value for number, value in measured.items() if value is not None}
    sign = 1 if metric.better == "higher" else -1
    best = max(there, key=lambda number: (sign * there[number], -number), default=None) if metric.better else None
    return {
        "better": metric.better,
        "unit": metric.unit,
        "last": next(reversed(measured.values())),
        "best": there[best] if best else None,
        "round_of_best": best,
    }


def simulated_to(history: Sequence[RoundRecord], number: int | None) -> dict[str, float | None]:
    """The simulated seconds until the end of a round, where there is a clock; None if there is no such round."""
    if not history or history[-1].clock is None:
        return {}
    clock = history[number - 1].clock if number else None
    return {SIMULATED: clock.total if clock else None}


def rounds_to(accuracy: Mapping[int, float], target: float | None) -> tuple[int | None, int | None]:
    """The first evaluated round at or above the target, and the first in which it may have been reached unseen.

    They differ where not every round is evaluated. None without a target or if it was never reached.
    """
    before = 0
    for number, value in accuracy.items():
        if target is not None and value >= target:
            return number, before + 1
        before = number
    return None, None
