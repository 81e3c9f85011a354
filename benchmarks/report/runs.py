"""Run folders as fedfuse writes them, of any length and without any training: curves that rise, with noise by seed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

from fedfuse.core.files import write_text
from fedfuse.core.origin import Origin
from fedfuse.data import PartitionReport
from fedfuse.data.partition import Dirichlet
from fedfuse.experiment.config import ExperimentConfig, validate
from fedfuse.federation import confusion
from fedfuse.federation.events import EventLog
from fedfuse.federation.folder import RunFolder
from fedfuse.federation.logged_rounds import LOG
from fedfuse.federation.state import PrototypeRecord, RoundRecord
from fedfuse.federation.summary import MetricFacts, summarise_rounds

CLIENTS, EXAMPLES, PARAMETERS = 20, 2000, 4810
ORIGIN = Origin("0.1.0", None, "2.0.0", "3.11.0", "a machine")


@dataclass(frozen=True)
class Made:
    """What a folder shall hold."""

    method: str = "fedavg"
    seed: int = 0
    rounds: int = 5
    planned: int | None = None
    """Of a run that is not finished; as many as there are if None."""
    name: str = "study"
    models: tuple[str, ...] = ("mlp",)
    classes: tuple[str, ...] = ("ant", "bee", "cat")
    level: float = 0.8
    """The accuracy that its curve tends to."""
    bytes_per_round: int = 1000
    sections: Mapping[str, Any] = field(default_factory=dict)
    """Of the experiment, laid over."""
    data_sha256: str | None = None

    @property
    def config(self) -> ExperimentConfig:
        raw: dict[str, Any] = {
            "name": self.name,
            "seed": self.seed,
            "data": {"name": "blobs", "examples": EXAMPLES},
            "partition": {"kind": "dirichlet", "clients": CLIENTS, "alpha": 0.5},
            "models": {name: {"arch": "mlp"} for name in self.models},
            "federation": {"rounds": self.planned or self.rounds},
            "evaluation": {"target_accuracy": 0.7},
            "method": self.method,
        }
        return validate({**raw, **self.sections})


def write_run(path: Path, made: Made) -> RunFolder:
    """A whole run folder but for models and checkpoints, which nobody reads to look at it."""
    folder, config = RunFolder(path), made.config
    path.mkdir(parents=True)
    write_text(folder.config, config.to_yaml())
    report = _partition(made, config)
    report.save(folder.partition)
    facts = {
        "config_sha256": config.sha256(),
        "data": {
            "name": config.data.name,
            "origin": "generated",
            "train": EXAMPLES,
            "validation": 0,
            "public": 0,
            "test": 500,
            "sha256": made.data_sha256 or f"{made.seed:064d}",
        },
        "partition_sha256": report.sha256,
        "source": None,
        "device": "cpu",
    }
    records = list(_records(made))
    with closing(EventLog(folder.events)) as log:
        log.emit("run_started", rounds=config.federation.rounds, **facts, origin=ORIGIN.to_json())
        for record in records:
            log.emit("round_started", round=record.round, clients=list(record.clients))
            for client in record.refused:
                reason = "weights are not finite"
                log.emit("update_refused", round=record.round, client=client, reason=reason, bytes_up=1)
            log.emit("round_finished", **record.to_json())
        if made.planned is None:
            log.emit("run_finished", seconds=1.0, models=len(made.models), **{LOG: asdict(log.mark())})
    if made.planned is None:
        _finish(folder, made, {**config.names(), **facts}, records)
    return folder


def _finish(folder: RunFolder, made: Made, about: Mapping[str, Any], records: list[RoundRecord]) -> None:
    config = made.config
    known = {name: {"parameters": PARAMETERS, "weights_sha256": "0" * 64} for name in made.models}
    metrics = [MetricFacts(one.called, one.better, one.unit) for one in config.evaluation.metrics]
    target = config.evaluation.target_accuracy
    if config.recipe.has_server_model:
        confusion.write(folder.confusion, {name: _confusion(made) for name in made.models})
    folder.write_summary(summarise_rounds(records, known, about, target, config.recipe.has_server_model, metrics))


def _partition(made: Made, config: ExperimentConfig) -> PartitionReport:
    random = np.random.default_rng(made.seed)
    labels = random.integers(0, len(made.classes), EXAMPLES)
    parts = np.array_split(random.permutation(EXAMPLES), CLIENTS)
    settings = config.partition if isinstance(config.partition, Dirichlet) else Dirichlet(clients=CLIENTS, alpha=0.5)
    return PartitionReport.of(settings, parts, labels, made.classes)


def _confusion(made: Made) -> confusion.Confusion:
    random = torch.Generator().manual_seed(made.seed)
    labels, others = (torch.randint(len(made.classes), (500,), generator=random) for _ in range(2))
    right = torch.rand(500, generator=random) < made.level
    return confusion.Confusion.of(torch.where(right, labels, others), labels, len(made.classes))


def _records(made: Made) -> Iterator[RoundRecord]:
    config, random = made.config, Random(f"{made.method} {made.seed}")
    fuses = config.recipe.fuse.makes_students
    for number in range(1, made.rounds + 1):
        clients = tuple(sorted(random.sample(range(CLIENTS), 8)))
        own = {name: _measured(made, random, number, fuses) for name in made.models}
        yield RoundRecord(
            round=number,
            clients=clients,
            refused=clients[:1] if number % 50 == 0 else (),
            screened=(),
            bytes_up=8 * made.bytes_per_round,
            bytes_down=8 * made.bytes_per_round,
            training_loss=1.0 / number,
            ensemble_accuracy=_noisy(made.level + 0.02, random, number) if fuses else None,
            prototypes=own,
            seconds=round(0.5 + 0.1 * random.random(), 3),
        )


def _measured(made: Made, random: Random, number: int, fuses: bool) -> PrototypeRecord:
    accuracy = _noisy(made.level, random, number)
    return PrototypeRecord(accuracy, 1.5 - accuracy, max(0.0, accuracy - 0.03) if fuses else None)


def _noisy(level: float, random: Random, number: int) -> float:
    return min(1.0, max(0.0, level * (1 - math.exp(-number / 20)) + random.gauss(0, 0.01)))
