"""What a tracker is told: a round as numbers with names, an experiment as parameters, a summary as numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

LONGEST = 250
"""Letters of a parameter's value, which some trackers refuse more of."""
COUNTED = ("refused", "screened", "absent", "late")
ROUND = ("training_loss", "seconds")


def of_round(event: Mapping[str, Any], totals: Mapping[str, float] | None = None) -> dict[str, float]:
    """A finished round, as the log has it; ``totals`` are those of the round before."""
    before = totals or {}
    values: dict[str, Any] = {}
    for model, own in event["prototypes"].items():
        measured = {"accuracy": own.get("accuracy"), "loss": own.get("loss")}
        measured |= {"accuracy_before_fusion": own.get("accuracy_before_fusion"), **own.get("metrics", {})}
        measured |= {f"{name}_before_fusion": value for name, value in own.get("metrics_before_fusion", {}).items()}
        measured |= {f"fusion_{name}": value for name, value in own.get("fusion", {}).items()}
        values |= {f"{name}/{model}": value for name, value in measured.items()}
    values |= {"accuracy/ensemble": event.get("ensemble_accuracy")}
    values |= {f"{name}/ensemble": value for name, value in event.get("ensemble_metrics", {}).items()}
    values |= {f"round/{name}": event.get(name) for name in ROUND}
    values |= {f"clients/{name}": len(event.get(name, ())) for name in COUNTED}
    values["clients/asked"] = len(event.get("clients", ()))
    for name in ("bytes_up", "bytes_down", "seconds"):
        values[f"total/{name}"] = before.get(f"total/{name}", 0) + event.get(name, 0)
    if clock := event.get("clock"):
        values["total/simulated_seconds"] = clock.get("total")
    return dict(_numbers(values))


def of_summary(summary: Mapping[str, Any]) -> dict[str, float]:
    """What a run came to."""
    values: dict[str, Any] = {}
    for model, own in summary["prototypes"].items():
        values |= {f"{name}/{model}": value for name, value in own.items() if name != "parameters"}
    values |= {name: value for name, value in summary.items() if name not in ("format", "seed")}
    return dict(_numbers(values))


def parameters(config: Mapping[str, Any]) -> dict[str, str | int | float | bool]:
    """Every key of an experiment by its address; lists are one value, and what is not set is left out."""
    return {key: value for key, value in _flat(config, "") if not key.startswith(("track", "methods."))}


def _flat(value: Any, address: str) -> Iterator[tuple[str, str | int | float | bool]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{address}.{key}" if address else str(key))
    elif isinstance(value, bool | int | float):
        yield address, value
    elif value is not None:
        text = value if isinstance(value, str) else json.dumps(value)
        yield address, text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _numbers(values: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in values.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield name, float(value)
