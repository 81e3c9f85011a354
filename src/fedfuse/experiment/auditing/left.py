"""What left the parties of a run, and how it scores every example: higher where the example was more likely trained on.

a model      logit of its confidence in the true label, z_y - log sum_{j != y} exp z_j. Cross-entropy falls with it,
             so that a threshold on either is the same attack (Yeom et al., 2018)
answers      for each example, those about the public inputs that are nearest to it: the mean log-probability of its
             label; and, if nothing but labels is believed, how many of them say its label
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedfuse.core.messages import Tensors, Update
from fedfuse.core.randomness import Key
from fedfuse.core.slices import slices
from fedfuse.core.weights import Weights
from fedfuse.experiment.assembly import Built
from fedfuse.federation import Snapshot
from fedfuse.federation.kept_clients import ClientKeeper, KeptClients
from fedfuse.federation.recipe import PROTOCOL
from fedfuse.models import Classifier
from fedfuse.models.modes import evaluation_mode
from fedfuse.parts.protocol.base import PREDICTIONS
from fedfuse.runtime.predict import in_small_batches
from fedfuse.runtime.source import Source

NEAREST = 5
"""Public inputs whose answers tell about an example."""
LEAST = 1e-6
"""A probability that an answer may have at least; answers of few bits say 0."""
BLOCK = 1000
MODEL, ANSWERS, LABELS = "model", "answers", "labels"


@dataclass(frozen=True, order=True)
class Left:
    """Something that left: ``what`` is one of MODEL, ANSWERS, LABELS; of a client, or the server's by its prototype."""

    what: str
    client: int = -1
    prototype: str = ""

    @property
    def key(self) -> str:
        """What it is called in files."""
        return f"{self.what}/server/{self.prototype}" if self.client < 0 else f"{self.what}/client/{self.client}"


@dataclass(frozen=True)
class Witness(ClientKeeper):
    """Sees the updates of the latest round as the server does, unpacked, and writes nothing."""

    seen: dict[int, Update] = field(default_factory=dict)

    def of_round(self, number: int, log: Path | None) -> KeptClients:
        self.seen.clear()
        return _Seen(self, Path(), number, self.seen)


@dataclass(frozen=True)
class _Seen(KeptClients):
    seen: dict[int, Update]

    def keep(self, update: Update, state: Tensors) -> None:
        self.seen[update.client] = replace(update, weights=update.weights.here) if update.weights else update

    def forget(self, client: int) -> None:
        self.seen.pop(client, None)


class Examples:
    """All examples that may be members, and then all that are not: the clients', and the test examples."""

    def __init__(self, built: Built) -> None:
        self.built = built
        self.train, self.test = len(built.splits.train), len(built.splits.test)
        self.labels = torch.cat([built.splits.train.labels, built.splits.test.labels])

    def __len__(self) -> int:
        return self.train + self.test

    @cached_property
    def inputs(self) -> Tensor:
        """As they are in the dataset, in one piece."""
        return torch.cat([self.built.splits.train.inputs, self.built.splits.test.inputs])

    def shown(self, where: Tensor | slice) -> Tensor:
        """As networks see them, without augmentation."""
        return self.built.compute.inputs(self.built.federation.test.transform(self.inputs[where]))

    @torch.no_grad()
    def confidence(self, model: Classifier) -> NDArray[np.float64]:
        """Of a model in the true label of every example, as a logit."""
        by_batch = self.built.federation.test.batch_statistics
        # Members and others lie side by side in each batch, which matters where networks look at their batch.
        order = torch.randperm(len(self), generator=Key(0).child("audit").torch())
        logits = torch.empty(len(self), self.built.dataset.classes, dtype=torch.float64)
        with evaluation_mode(model, by_batch):
            for where in slices(len(self), self.built.federation.test.batch_size):
                shown = self.shown(order[where])
                said = model(shown) if by_batch else in_small_batches(model, shown)
                logits[order[where]] = said.double().cpu()
        return margin(logits, self.labels).numpy()

    def nearest(self, public: Source) -> Tensor:
        """For every example, which public inputs are nearest to it, as networks see both."""
        shown = torch.cat([public.inputs(rows).flatten(1).cpu() for rows in public.batches(public.all_indices())])
        count = min(NEAREST, len(shown))
        blocks = (self.shown(where).flatten(1).cpu() for where in slices(len(self), BLOCK))
        return torch.cat([torch.cdist(block, shown).topk(count, largest=False).indices for block in blocks])


def margin(logits: Tensor, labels: Tensor) -> Tensor:
    """log p / (1 - p) of the labels' probability."""
    own = labels.unsqueeze(1)
    others = logits.scatter(1, own, -torch.inf).logsumexp(dim=1)
    return logits.gather(1, own).squeeze(1) - others


def scores_of(
    built: Built, examples: Examples, snapshot: Snapshot, updates: Mapping[int, Update]
) -> dict[Left, NDArray[np.float64]]:
    """How all that left in the last round, and the final models, score every example."""
    return dict(_scores(built, examples, snapshot, updates))


def _scores(
    built: Built, examples: Examples, snapshot: Snapshot, updates: Mapping[int, Update]
) -> Iterator[tuple[Left, NDArray[np.float64]]]:
    bank, carries = built.federation.bank, built.config.recipe.protocol.carries
    if built.config.recipe.has_server_model:
        for name, weights in snapshot.server.weights.items():
            yield Left(MODEL, prototype=name), examples.confidence(bank.lend(name, weights))
    if built.federation.sums is not None:  # of which the models above are made, and no client can be told from another
        return
    if carries == "weights" and not built.config.recipe.pooled:
        for client, update in sorted(updates.items()):
            yield Left(MODEL, client), examples.confidence(bank.lend(update.prototype, update.weights))
    if carries == "predictions" and not bank.reads_texts:
        yield from _of_answers(built, examples, snapshot.server.round, updates)


def _of_answers(
    built: Built, examples: Examples, number: int, updates: Mapping[int, Update]
) -> Iterator[tuple[Left, NDArray[np.float64]]]:
    recipe, key = built.config.recipe, Key(built.config.seed)
    assert built.source is not None, "predictions are about public inputs"
    nearest = examples.nearest(recipe.protocol.public(recipe.scores.inputs(built.source, key), key, number))
    for client, update in sorted(updates.items()):
        said = update.extras[f"{PROTOCOL}/{PREDICTIONS}"].double()
        logs = said.clamp(min=LEAST).log() if recipe.protocol.sends_probabilities else said.log_softmax(dim=1)
        own = examples.labels.unsqueeze(1)
        believed = logs[nearest].gather(2, own.unsqueeze(1).expand(-1, nearest.shape[1], 1)).squeeze(2)
        yield Left(ANSWERS, client), believed.mean(dim=1).numpy()
        yield Left(LABELS, client), (said.argmax(dim=1)[nearest] == own).double().mean(dim=1).numpy()


def of_kept(examples: Examples, models: Mapping[int, tuple[str, Weights]]) -> NDArray[np.float64]:
    """What the models that one client sent in several rounds say together: the mean of their confidence."""
    bank = examples.built.federation.bank
    said: NDArray[np.float64] = np.mean(
        [examples.confidence(bank.lend(name, one)) for name, one in models.values()], axis=0
    )
    return said
