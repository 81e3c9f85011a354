"""What can be found out from what each method sends: an audit of every published method, on digits and on MNIST."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import fedfuse
from benchmarks.reveals.attacked import SHADOWS, played
from fedfuse import Audit, ConfigError, Experiment
from fedfuse.experiment.auditing.audit import Finding
from fedfuse.experiment.config import merge
from fedfuse.methods import METHODS

DATA: Mapping[str, dict[str, Any]] = {
    "digits": {"name": "digits", "public": 0.2, "validation": 0.1},
    "mnist": {"name": "mnist", "train_limit": 2600, "test_limit": 1000, "public": 300, "validation": 300},
}
BASE: dict[str, Any] = {
    "partition": {"kind": "iid", "clients": 10},
    "models": {"net": {"arch": "mlp", "hidden": [64]}},
    "federation": {"rounds": 2, "participation": 1.0},
    "training": {"epochs": 50, "batch_size": 10, "optimizer": {"kind": "sgd", "learning_rate": 0.1}},
}
"""Long local training, which is remembered best."""
SHORT: dict[str, Any] = {"method": {"fuse": {"distiller": {"steps": 500}}}}
HEAD: dict[str, Any] = {"models": {"net": {"projection_head": 64}}}
SMALL_STEPS: dict[str, Any] = {"method": {"fuse": {"distiller": {"batch_size": 16, "swa": {"collect_after": 100}}}}}
LARGER_STEPS: Mapping[str, dict[str, Any]] = {
    "feded-w2": {"method": {"fuse": {"distiller": {"optimizer": {"kind": "adam", "learning_rate": 1e-3}}}}}
}
"""With the published rate (1e-5), so few public inputs teach nothing."""
TRIES: tuple[dict[str, Any], ...] = (SHORT, {}, HEAD, SMALL_STEPS)
"""What is tried in turn: a short distillation where there is one, the method as it is, with a projection head, with
enough steps of a few public inputs for SWA."""


def table(folder: Path, data: str) -> str:
    """As markdown, a row for each method; what is there already is not trained again."""
    lines = [
        "| method | accuracy, % | what a client sends: AUC | TPR at 1 % FPR | final model: AUC |",
        "|---|---|---|---|---|",
    ]
    for name in METHODS:
        result = _result(name, data, folder / data / name)
        accuracy = 100 * max(result.accuracy.values())
        lines.append(f"| {name} | {accuracy:.1f} | {' | '.join(_numbers(result))} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def _result(method: str, data: str, folder: Path) -> fedfuse.RunResult:
    for changes in TRIES:
        try:
            own = merge({"method": {"name": method}}, LARGER_STEPS.get(method, {}))
            raw = merge(merge({**BASE, "data": DATA[data]}, own), changes)
            return played(Experiment(raw), folder)
        except ConfigError as error:
            refused = error
    raise refused


def _numbers(result: fedfuse.RunResult) -> Iterator[str]:
    """Of the strongest attack: on messages, the mean of all clients."""
    try:
        found = fedfuse.audit(result.folder.path, SHADOWS)
    except ConfigError:  # nothing that could be attacked leaves
        yield from ("", "", "")
        return
    sent, final = _by_lira(found, "mean of"), _by_lira(found, "final model")
    yield f"{sent.auc}" if sent else ""
    yield f"{sent.tpr[0.01]}" if sent else ""
    yield f"{final.auc}" if final else ""


def _by_lira(found: Audit, what: str) -> Finding | None:
    return next((one for one in found.findings if one.what.startswith(what) and one.attack.endswith("LiRA")), None)
