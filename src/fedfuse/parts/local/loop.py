"""The one training loop of every client and every method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedfuse.data import Transform
from fedfuse.parts.local.objective import Batch, Hooks, Visit
from fedfuse.runtime.batch_loader import BatchLoader
from fedfuse.runtime.batches import epoch_batches
from fedfuse.runtime.compute import Compute


@dataclass(frozen=True)
class Trained:
    """What the loop did: steps taken, the mean training loss over them, and whether it ended before its time."""

    steps: int
    loss: float
    diverged: bool = False

    @property
    def metrics(self) -> dict[str, float]:
        return {"loss": self.loss, "steps": self.steps, **({"diverged": 1} if self.diverged else {})}


def train(
    visit: Visit, hooks: Hooks, transform: Transform, compute: Compute, extra_loss: Callable[[], Tensor] | None = None
) -> Trained:
    """Run the visit's epochs on its model, calling the hooks at their moments; ``companion`` is a further loss."""
    model, examples = visit.model, visit.examples
    loader = BatchLoader(examples, transform, compute)
    training = visit.training
    optimizer = training.optimizer.build(model, visit.learning_rate)
    rates = training.rates(visit.learning_rate, training.steps(len(examples)))
    lengths = examples.lengths if training.by_length else None
    model.train()
    losses: list[Tensor] = []
    with visit.key.child("dropout").default_generator():
        for epoch in range(training.epochs):
            watch = _Watch(training.stop_above)
            views = visit.key.child("augment", epoch).torch()
            order = visit.key.child("batches", epoch) if training.shuffle else None
            for where in epoch_batches(len(examples), training.batch_size, order, lengths):
                rate = next(rates)
                for group in optimizer.param_groups:
                    group["lr"] = rate
                batch = Batch(*loader.batch(where, views))
                features = model.features(batch.inputs)
                logits = model.classifier(features)
                loss = F.cross_entropy(logits, batch.labels)
                penalty = hooks.penalty(batch, features, logits)
                if penalty is not None:
                    loss = loss + penalty
                if extra_loss is not None:
                    loss = loss + extra_loss()
                optimizer.zero_grad()
                loss.backward()
                hooks.on_gradient()
                if training.clip_norm is not None:
                    nn.utils.clip_grad_norm_(model.parameters(), training.clip_norm)
                optimizer.step()
                hooks.on_step_end()
                losses.append(loss.detach())
                if watch.sees_divergence(losses[-1]):
                    return _trained(losses, diverged=True)
    return _trained(losses)


class _Watch:
    """Whether the mean loss of an epoch so far is above a bound or not a number, asked after every step."""

    def __init__(self, bound: float | None) -> None:
        self.bound, self.total, self.steps = bound, 0.0, 0

    def sees_divergence(self, loss: Tensor) -> bool:
        if self.bound is None:
            return False
        self.total += float(loss)
        self.steps += 1
        return not self.total / self.steps <= self.bound


def _trained(losses: Sequence[Tensor], diverged: bool = False) -> Trained:
    return Trained(len(losses), float(torch.stack(list(losses)).mean()), diverged)
