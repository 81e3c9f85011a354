"""One experiment from its start to its last round, without files: how good its models are, and how open a backdoor."""

from __future__ import annotations

from statistics import fmean

import torch

from benchmarks.attacks.grid import Cell
from fedfuse.experiment.assembly import Built, Loaded, build, load_examples
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.federation import Snapshot
from fedfuse.federation.events import EventLog
from fedfuse.testing.attacks import Backdoor, success_rate

Numbers = dict[str, float]
Job = tuple[Cell, int]
"""A cell and its seed."""


def measured(job: Job) -> tuple[Job, Numbers]:
    """A job with what came of it, for whoever gives several away."""
    return job, played(*job)


def played(cell: Cell, seed: int) -> Numbers:
    """The models' mean accuracy after the last round, in percent, and of a backdoor how often it opens."""
    config = cell.config(seed)
    built, snapshot = finished(config)
    opened = [_opened(built, snapshot, one) for one in config.attack if isinstance(one, Backdoor)]
    return {"accuracy": accuracy_of(snapshot), **({"success": 100 * opened[0]} if opened else {})}


def finished(config: ExperimentConfig) -> tuple[Built, Snapshot]:
    """After the last round."""
    built = build(config, EventLog(), loaded=_loaded(config))
    snapshot = built.federation.start()
    for _ in range(config.federation.rounds):
        snapshot = built.federation.advance(snapshot)
    built.federation.engine.close()
    return built, snapshot


def accuracy_of(snapshot: Snapshot, of_ensemble: bool = False) -> float:
    """The mean of the models', in percent, or the ensemble's; the last round is always evaluated."""
    last = snapshot.server.history[-1]
    reached = [last.ensemble_accuracy] if of_ensemble else [own.accuracy for own in last.prototypes.values()]
    return 100 * fmean(value for value in reached if value is not None)


def _opened(built: Built, snapshot: Snapshot, backdoor: Backdoor) -> float:
    """Of the first model."""
    name, weights = next(iter(snapshot.server.weights.items()))
    model = built.federation.bank.lend(name, weights).eval()
    test, transform, compute = built.splits.test, built.clients.transform, built.compute

    def predict(raw: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            answers: torch.Tensor = model(compute.inputs(transform(raw))).argmax(dim=1)
            return answers

    return success_rate(predict, test.select(torch.arange(len(test))), backdoor.target)


_KNOWN: dict[tuple[str, int], Loaded] = {}
"""The examples are read once for all cells of a process that share them."""


def _loaded(config: ExperimentConfig) -> Loaded:
    key = (config.data.model_dump_json(), config.seed)
    if key not in _KNOWN:
        _KNOWN[key] = load_examples(config, EventLog())
    return _KNOWN[key]
