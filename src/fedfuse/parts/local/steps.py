"""A client's steps, whether it trains alone or in company: which examples, how they are seen, what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedfuse.parts.context import ClientContext
from fedfuse.runtime.batches import epoch_batches


@dataclass(frozen=True)
class Step:
    """The examples of one step; ``views`` decides their augmentation, if there is any."""

    epoch: int
    where: Tensor
    views: torch.Generator | None


@dataclass(frozen=True)
class LoopStats:
    """What the loop did: steps taken, the mean training loss over them, and whether it ended before its time.

    None is a loss that is nobody's business.
    """

    steps: int
    loss: float | None
    diverged: bool = False

    @staticmethod
    def of(losses: Sequence[Tensor], diverged: bool = False) -> LoopStats:
        return LoopStats(len(losses), float(torch.stack(list(losses)).mean()), diverged)

    @property
    def metrics(self) -> dict[str, float]:
        loss = {} if self.loss is None else {"loss": self.loss}
        return {**loss, "steps": self.steps, **({"diverged": 1} if self.diverged else {})}


def steps_of(client: ClientContext) -> Iterator[Step]:
    """All steps of a client's round, epoch by epoch."""
    examples, training, key = client.examples, client.training, client.key
    lengths = examples.lengths if training.by_length else None
    for epoch in range(training.epochs):
        views = key.child("augment", epoch).torch() if client.transform.augments else None
        order = key.child("batches", epoch) if training.shuffle else None
        for where in epoch_batches(len(examples), training.batch_size, order, lengths):
            yield Step(epoch, where, views)


class Watch:
    """Whether the mean loss of an epoch so far is above a bound or not a number, asked after every step."""

    def __init__(self, bound: float | None) -> None:
        self.bound, self.epoch, self.total, self.steps = bound, -1, 0.0, 0

    def sees_divergence(self, epoch: int, loss: Tensor) -> bool:
        if self.bound is None:
            return False
        if epoch != self.epoch:
            self.epoch, self.total, self.steps = epoch, 0.0, 0
        self.total += float(loss)
        self.steps += 1
        return not self.total / self.steps <= self.bound
