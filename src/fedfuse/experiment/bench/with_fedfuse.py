"""The same work as an experiment of fedfuse, watched from outside by a listener."""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from fedfuse import Experiment
from fedfuse.core.errors import FedfuseError
from fedfuse.experiment.bench.clock import Moment, forget_peak, peak_bytes
from fedfuse.experiment.bench.cores import available_cores
from fedfuse.experiment.bench.loop import architecture
from fedfuse.experiment.bench.work import Work
from fedfuse.federation.events import Event
from fedfuse.federation.folder import RunFolder

EVERYTHING_OFF = (
    "compute.channels_last=false", "compute.fold=false", "compute.stack=false", "engine.workers=1",
)  # fmt: skip
"""What fedfuse would choose by itself, as it was before it chose anything."""


@dataclass
class Watched:
    """The moments of one run."""

    rounds: list[Moment] = field(default_factory=list)
    """At the end of each."""
    first_client: Moment | None = None
    """When the first client of the first round was done, so that workers have started."""
    ticks: dict[int, Moment] = field(default_factory=dict)
    """By step of the distillation, as far as it tells."""
    over: Moment = field(default_factory=Moment.now)
    memory_before: int = 0
    memory_peak: int = 0
    joined: int = 0
    """Worker processes that fedfuse started by itself."""
    chosen: str = ""

    def __call__(self, event: Event) -> None:
        if event["event"] == "round_finished":
            self.rounds.append(Moment.now())
            _refuse_helpers_on_one_core()
        elif event["event"] == "tick" and event["what"] == "clients" and event["done"] and self.first_client is None:
            self.first_client = Moment.now()
        elif event["event"] == "workers_joined":
            self.joined = event["workers"]
        elif event["event"] == "tick" and event["what"] == "distil":
            self.ticks[event["done"]] = Moment.now()


def watch(experiment: Mapping[str, Any], assignments: Sequence[str] = ()) -> Watched:
    """Run it in a folder that is gone afterwards."""
    loaded = Experiment.load(experiment, assignments)
    with tempfile.TemporaryDirectory(prefix="fedfuse-bench-") as folder:
        watched = Watched(memory_before=forget_peak())
        loaded.run(Path(folder) / "run", listeners=(watched,))
        watched.over, watched.memory_peak = Moment.now(), peak_bytes()
        watched.chosen = _chosen(RunFolder(Path(folder) / "run"), watched.joined)
    return watched


def experiment(work: Work, examples: Path, **sections: Any) -> dict[str, Any]:
    """FedAvg on these examples; ``sections`` are laid over it."""
    optimizer = {"kind": "sgd", "learning_rate": work.rate, "momentum": work.momentum}
    data = {"name": "npz", "path": str(examples), "validation": 0, "public": work.public}
    return {
        "name": "bench",
        "data": {**data, **({"augment": ["crop", "flip"]} if work.augment else {})},
        "partition": {"kind": "iid", "clients": work.clients},
        "models": {"net": architecture(work)},
        "training": {"epochs": work.epochs, "batch_size": work.batch, "optimizer": optimizer},
        "federation": {"rounds": work.rounds, "clients_per_round": work.sampled},
        "method": "fedavg",
        **sections,
    }


def _chosen(folder: RunFolder, joined: int) -> str:
    """What the run's config says of layout, threads and workers, and how many of these joined."""
    config = yaml.safe_load(folder.config.read_text(encoding="utf-8"))
    keys = {**config["compute"], **config["engine"]}
    told = {key: value for key, value in keys.items() if key not in ("kind", "timeout", "device") and value is not None}
    return ", ".join([*(f"{key} {_word(value)}" for key, value in told.items()), f"{joined} joined"])


def _word(value: object) -> str:
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def _refuse_helpers_on_one_core() -> None:
    """Processor time of this process would not be all there is."""
    if available_cores() == 1 and multiprocessing.active_children():
        raise FedfuseError("fedfuse started further processes although there is one core")
