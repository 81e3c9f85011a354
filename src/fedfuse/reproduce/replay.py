"""A finished run's last round once more, to see what its clients' models were; a run keeps only its final ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.weights import Weights, mean
from fedfuse.experiment.assembly import Built, build
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.federation import Snapshot
from fedfuse.federation.checkpoint import load_checkpoint
from fedfuse.federation.engine import Engine
from fedfuse.federation.events import EventLog
from fedfuse.federation.folder import RunFolder
from fedfuse.federation.state import ClientStates
from fedfuse.models import Classifier
from fedfuse.runtime.pool import Pool


@dataclass(frozen=True)
class LastRound:
    """What was there before fusion, and after it."""

    built: Built
    updates: list[Update]
    """Of the last round's clients, in client order."""
    after: Snapshot

    @property
    def prototype(self) -> str:
        """The architecture of the first client; pictures of models are about one."""
        return self.updates[0].prototype

    @property
    def average(self) -> Weights:
        """The clients' average by their examples."""
        return mean([update.weights for update in self.updates], [float(update.examples) for update in self.updates])

    def model(self, weights: Weights) -> Classifier:
        """A network with these weights, until the next one is asked for."""
        return self.built.federation.bank.lend(self.prototype, weights)


class RecordingEngine(Engine):
    """An engine that remembers the updates of the latest round."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.updates: list[Update] = []

    def train(self, tasks: Sequence[Task], states: ClientStates) -> Iterator[tuple[Update, Tensors]]:
        self.updates = []
        for update, state in self.engine.train(tasks, states):
            self.updates.append(update)
            yield update, state

    def pool(self, number: int) -> Pool:
        return self.engine.pool(number)

    def close(self) -> None:
        self.engine.close()


def replay(config: ExperimentConfig, folder: RunFolder) -> LastRound:
    """Play from the checkpoint before the last one, which gives the same bits again."""
    built = build(config, EventLog())
    witness = RecordingEngine(built.federation.engine)
    federation = replace(built.federation, engine=witness)
    rounds = folder.read_summary()["rounds"]
    snapshot = load_checkpoint(folder.checkpoints, config.sha256(), before=rounds) or federation.start()
    try:
        while snapshot.server.round < rounds:
            snapshot = federation.advance(snapshot)
    finally:
        witness.close()
    return LastRound(built, sorted(witness.updates, key=lambda update: update.client), snapshot)
