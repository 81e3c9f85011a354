"""A finished run's last round once more, to see what its clients' models were; a run keeps only its final ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Layout, Weights, mean
from fedfuse.data import Examples
from fedfuse.experiment.assembly import Built, build
from fedfuse.experiment.run import Experiment
from fedfuse.federation import Federation, Snapshot
from fedfuse.federation.checkpoint import Identity, load_checkpoint
from fedfuse.federation.client_states import ClientStates, HeldStates
from fedfuse.federation.engine import Engine
from fedfuse.federation.events import EventLog
from fedfuse.federation.folder import RunFolder
from fedfuse.models import Classifier
from fedfuse.models.autoencoder import autoencoder
from fedfuse.models.modes import evaluation_mode
from fedfuse.parts.scores.base import SLOT as SCORES
from fedfuse.parts.scores.reconstruction import NETWORK
from fedfuse.parts.teachers import GaussianTeachers, RoundModels
from fedfuse.runtime.evaluate import Evaluator
from fedfuse.runtime.pool import Pool


@dataclass(frozen=True)
class LastRound:
    """What was there before fusion, and after it. It is about one architecture, that of the first client."""

    built: Built
    updates: list[Update]
    """Of the last round's clients that run it, in client order."""
    after: Snapshot

    @property
    def prototype(self) -> str:
        return self.updates[0].prototype

    @property
    def final(self) -> Weights:
        """The server's, after fusion."""
        return self.after.server.weights[self.prototype]

    @property
    def average(self) -> Weights:
        """The clients' average by their examples."""
        return self.mixture([float(update.examples) for update in self.updates])

    def mixture(self, shares: Sequence[float]) -> Weights:
        """The first clients' average, as many as there are ``shares``."""
        return mean([update.weights for update in self.updates[: len(shares)]], shares)

    def sampled(self, key: Key) -> list[Weights]:
        """Models sampled around the clients, as FedBE does."""
        models = RoundModels(self.updates, {}, self.after.server.weights, key)
        return [teacher.weights for teacher in GaussianTeachers().gather(models)]

    @property
    def test(self) -> Examples:
        return self._test.examples

    def prepared(self, raw: Tensor) -> Tensor:
        """Inputs as networks see them."""
        return self._test.compute.inputs(self._test.transform(raw))

    def accuracy(self, weights: Weights) -> float:
        """On the test split."""
        return self._test.score(self.model(weights)).accuracy

    @torch.no_grad()
    def probabilities(self, weights: Weights, raw: Tensor) -> Tensor:
        model = self.model(weights)
        with evaluation_mode(model):
            logits: Tensor = model(self.prepared(raw))
        return logits.softmax(dim=1).cpu()

    @torch.no_grad()
    def features(self, weights: Weights, raw: Tensor) -> Tensor:
        model = self.model(weights)
        with evaluation_mode(model):
            return model.features(self.prepared(raw)).cpu()

    def model(self, weights: Weights) -> Classifier:
        """A network with these weights, until the next one is asked for."""
        return self.built.federation.bank.lend(self.prototype, weights)

    def class_counts(self, client: int) -> Sequence[int]:
        """How many examples of each class a client has."""
        return self.built.partition.clients[client].class_counts

    def autoencoder(self, client: int) -> nn.Sequential:
        """That of a client which scores inputs by ``reconstruction``: encoder and decoder."""
        network = autoencoder(self.test.shape)
        Weights(self.after.clients[client][f"{SCORES}/{NETWORK}"], Layout.of(network)).load_into(network)
        self._test.compute.place(network)
        return network.eval()

    @property
    def _test(self) -> Evaluator:
        return self.built.federation.test


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


def replay(folder: str | Path) -> LastRound:
    """Play the last round of the run in a folder from the checkpoint before it, which gives the same bits again.

    >>> run = fedfuse.run("digits", method="fedavg", federation={"rounds": 1}, out="runs/replayed")
    >>> last = fedfuse.replay(run.folder.path)
    >>> last.average.equals(last.final)
    True
    """
    run, config = RunFolder(Path(folder)), Experiment.load(folder).config
    built = build(config, EventLog())
    witness = RecordingEngine(built.federation.engine)
    federation = replace(built.federation, engine=witness)
    snapshot = play_last_round(run, config.of_checkpoints, federation)
    updates = sorted(witness.updates, key=lambda update: update.client)
    return LastRound(built, [update for update in updates if update.prototype == updates[0].prototype], snapshot)


def play_last_round(run: RunFolder, identity: Identity, federation: Federation) -> Snapshot:
    """Play the last round of a finished run, or all of it if its checkpoints are gone. The engine is closed."""
    rounds = run.read_summary()["rounds"]
    snapshot = _before(run, identity, rounds) or federation.start()
    try:
        while snapshot.server.round < rounds:
            snapshot = federation.advance(snapshot)
    finally:
        federation.engine.close()
    return snapshot


def _before(run: RunFolder, identity: Identity, number: int) -> Snapshot | None:
    """The checkpoint before a round. States are held, so that nothing is written into the run's folder."""
    saved = load_checkpoint(run.checkpoints, identity, run.events, before=number)
    return replace(saved.snapshot, clients=HeldStates(saved.snapshot.clients)) if saved else None
