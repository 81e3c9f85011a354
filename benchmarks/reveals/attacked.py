"""The audit with and without privacy, on digits: ten parties, and what each sends in the last round."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fedfuse
from fedfuse import Experiment

SHADOWS = 8
BASE = {
    "data": {"name": "digits", "public": 0.2},
    "partition": {"kind": "iid", "clients": 10},
    "models": {"net": {"arch": "mlp", "hidden": [64]}},
}
SHORT = {"epochs": 2, "batch_size": 32, "optimizer": {"kind": "sgd", "learning_rate": 0.1}}
LONG = {"epochs": 100, "batch_size": 10, "optimizer": {"kind": "sgd", "learning_rate": 0.1}}
RATES = {8.0: 1.0, 1.0: 0.1}
"""By epsilon, as in docs/privacy.md."""


def rows() -> Iterator[tuple[str, dict[str, Any]]]:
    """What each is called, and the experiment."""
    yield "FedAvg, 2 rounds of 100 epochs", _weights(2, LONG)
    yield "FedAvg, 10 rounds of 2 epochs", _weights(10, SHORT)
    for epsilon, rate in RATES.items():
        optimizer = {"kind": "sgd", "learning_rate": rate}
        training = {**SHORT, "optimizer": optimizer, "privacy": {"norm": 1.0, "multiplier": "auto"}}
        privacy = {"unit": "example", "budget": epsilon}
        yield f"10 rounds of 2 epochs, DP-SGD, rate {rate:g}", {**_weights(10, training), "privacy": privacy}
    once = {"federation": {"rounds": 1, "participation": 1.0}, "training": LONG}
    yield "FedED, 1 round of 100 epochs", {**BASE, **once, "method": "feded-w0"}
    matched = {**LONG, "privacy": {"norm": 1.0, "multiplier": "auto"}}
    promised = {"unit": "example", "budget": 1.0}
    yield "2 rounds of 100 epochs, DP-SGD, all else alike", {**_weights(2, matched), "privacy": promised}


def table(folder: Path) -> str:
    """As markdown."""
    lines = [
        "| run | ε | accuracy, % | what left | attack | AUC | TPR at 1 % FPR |",
        "|---|---|---|---|---|---|---|",
    ]
    for number, (way, config) in enumerate(rows()):
        result = played(Experiment(config), folder / str(number))
        found = fedfuse.audit(result.folder.path, SHADOWS)
        epsilon = "∞" if result.epsilon is None else f"{result.epsilon:.2f}"
        accuracy = 100 * max(result.accuracy.values())
        for one in found.findings:
            if "highest" in one.what or "labels" in one.attack:
                continue
            start = f"| {way} | {epsilon} | {accuracy:.1f} | {one.what} | {one.attack}"
            lines.append(f"{start} | {one.auc} | {one.tpr[0.01]} |")
            print(lines[-1], flush=True)
    return "\n".join(lines)


def _weights(rounds: int, training: dict[str, Any]) -> dict[str, Any]:
    federation = {"rounds": rounds, "participation": 1.0}
    return {**BASE, "federation": federation, "training": training, "method": "fedavg"}


def played(experiment: Experiment, folder: Path) -> fedfuse.RunResult:
    if (folder / "summary.json").exists():
        return fedfuse.load_run(folder)
    return experiment.run(folder)
