"""A small real experiment, played without files: three rounds on toy data take a tenth of a second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from fedfuse.core.hashes import sha256_of
from fedfuse.experiment.assembly import Built, build
from fedfuse.experiment.config import ExperimentConfig, Raw, merge, validate
from fedfuse.federation import Snapshot
from fedfuse.federation.checkpoint import Saved, load_checkpoint, new_states, save_checkpoint
from fedfuse.federation.events import Event, EventLog

ROUNDS = 3
SECTIONS: Raw = {
    "data": {"name": "blobs", "train_limit": 150, "validation": 0.15, "public": 0.2},
    "partition": {"kind": "dirichlet", "clients": 4, "alpha": 1.0, "min_examples": 2},
    "models": {"one": {"arch": "mlp", "hidden": [6]}},
    "training": {"epochs": 1, "batch_size": 8},
    "federation": {"rounds": ROUNDS, "participation": 0.75},
    "compute": {"device": "cpu"},
}


@dataclass(frozen=True)
class Played:
    """How far a trial has come, and what its log says."""

    snapshot: Snapshot
    events: tuple[Event, ...]

    def told(self, kind: str) -> list[Event]:
        return [event for event in self.events if event["event"] == kind]


@dataclass(frozen=True)
class Trial:
    """An experiment to play."""

    config: ExperimentConfig

    @staticmethod
    def of(*layers: Mapping[str, Any]) -> Trial:
        """The toy experiment with sections laid over it, layer by layer."""
        raw = SECTIONS
        for sections in layers:
            raw = merge(raw, sections)
        return Trial(validate(raw))

    def but(self, **sections: Any) -> Trial:
        """The same with other values in the place of whole sections."""
        return Trial(self.config.model_copy(update=sections))

    def one_by_one(self) -> Trial:
        """The same without stacks of clients."""
        return self.but(compute=self.config.compute.model_copy(update={"stack": False}))

    def play(self, rounds: int = ROUNDS, after: Snapshot | None = None) -> Played:
        """From the start, or from where another one stopped, to the end of a round."""
        events: list[Event] = []
        with opened(self.config, EventLog(listeners=(events.append,))) as built:
            snapshot = after or built.federation.start()
            while snapshot.server.round < rounds:
                snapshot = built.federation.advance(snapshot)
        return Played(snapshot, tuple(events))


@contextmanager
def opened(config: ExperimentConfig, log: EventLog) -> Iterator[Built]:
    """The federation of an experiment, whose engine is closed at the end."""
    built = build(config, log)
    try:
        yield built
    finally:
        built.federation.engine.close()


def through_a_checkpoint(snapshot: Snapshot, folder: Path) -> Snapshot:
    """The snapshot as it comes back from the disk; the folder is new, and its states are read from there."""
    number, states = snapshot.server.round, new_states(folder).after(snapshot.server.round, snapshot.clients.items())
    with closing(EventLog(folder / "events.jsonl")) as log:
        for record in snapshot.server.history:
            log.emit("round_finished", **record.to_json())
        save_checkpoint(folder, Saved(replace(snapshot, clients=states), log.mark()), "trial")
    saved = load_checkpoint(folder, "trial", folder / "events.jsonl")
    assert saved is not None, f"the checkpoint of round {number} cannot be read"
    return saved.snapshot


def tensors_of(snapshot: Snapshot) -> dict[str, Tensor]:
    """Everything that a checkpoint would hold, under names for people."""
    server = snapshot.server
    return {
        **{f"the weights of model {name}": weights.flat for name, weights in server.weights.items()},
        **{f"'{n}' in the memory of {part}": t for part, memory in server.memory.items() for n, t in memory.items()},
        **{f"'{n}' in the state of client {c}": t for c, state in snapshot.clients.items() for n, t in state.items()},
    }


def difference(one: Snapshot, other: Snapshot) -> str | None:
    """The first thing that is not the same bit for bit; None if everything is."""
    ours, theirs = tensors_of(one), tensors_of(other)
    for name in {**ours, **theirs}:
        if name not in ours or name not in theirs or not _same(ours[name], theirs[name]):
            return name
    for ours_then, theirs_then in zip(one.server.history, other.server.history, strict=True):
        if replace(ours_then, seconds=0.0) != replace(theirs_then, seconds=0.0):
            return f"the record of round {ours_then.round}"
    return None


def _same(one: Tensor, other: Tensor) -> bool:
    return (one.dtype, one.shape) == (other.dtype, other.shape) and sha256_of(one) == sha256_of(other)
