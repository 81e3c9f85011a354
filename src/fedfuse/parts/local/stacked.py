"""The training loop for several clients at a time: one network that computes for all of them, and each one's own hooks.

Every client does what parts/local/loop.py does: the same batches, views, rates, corrections and losses. A batch that is
shorter than the stack's is filled up with examples that do not count. A client that has fewer steps than others is done
when it has taken them; what the stack goes on computing in its place is thrown away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedfuse.core.weights import Weights
from fedfuse.parts.context import ClientContext
from fedfuse.parts.local.objective import Batch, Hooks
from fedfuse.parts.local.steps import LoopStats, Watch, steps_of
from fedfuse.runtime.stacked_batches import StackedBatch, stacked_batches
from fedfuse.runtime.twins import Stack


@dataclass(frozen=True)
class Trained:
    """What came of one client's training."""

    stats: LoopStats
    weights: Weights


def train_stacked(clients: Sequence[ClientContext], hooks: Sequence[Hooks], stack: Stack) -> list[Trained]:
    """Train clients whose ``model`` is a place of the stack, in the order of the places."""
    return _Training(clients, hooks, stack).run()


@dataclass
class _Place:
    """One client on its way through its steps."""

    number: int
    client: ClientContext
    hooks: Hooks
    epochs: list[int]
    watch: Watch
    losses: list[Tensor] = field(default_factory=list)
    diverged: bool = False
    trained: Trained | None = None

    def take(self, losses: Tensor) -> bool:
        """Note a step's loss; whether it was the last."""
        self.losses.append(losses[self.number])
        self.diverged = self.watch.sees_divergence(self.epochs[len(self.losses) - 1], self.losses[-1])
        return self.diverged or len(self.losses) == len(self.epochs)

    def finish(self, weights: Tensor) -> None:
        layout = self.client.start.layout
        self.trained = Trained(LoopStats.of(self.losses, self.diverged), Weights(weights.clone(), layout))


class _Training:
    def __init__(self, clients: Sequence[ClientContext], hooks: Sequence[Hooks], stack: Stack) -> None:
        self.twin, self.training, self.rate = stack.twin, clients[0].training, clients[0].learning_rate
        steps = [list(steps_of(client)) for client in clients]
        self.batches = stacked_batches(clients[0].bank.compute, stack, clients, steps)
        self.places = [
            _Place(number, client, own, [step.epoch for step in todo], Watch(self.training.stop_above))
            for number, (client, own, todo) in enumerate(zip(clients, hooks, steps, strict=True))
        ]
        self.steps = max(map(len, steps))
        self.is_personal = self.training.clip_norm is not None or any(type(own) is not Hooks for own in hooks)

    def run(self) -> list[Trained]:
        optimizer = self.training.optimizer.build(self.twin.network, self.rate)
        active = self.places
        if self.is_personal:
            self.twin.share_gradients()
        for step, rate in zip(range(self.steps), self.training.rates(self.rate, self.steps), strict=True):
            for group in optimizer.param_groups:
                group["lr"] = rate
            losses = self._losses(self.batches.batch(step), active)
            if self.is_personal:
                self.twin.clear_gradients()
            else:
                optimizer.zero_grad()
            losses.sum().backward()
            self._correct(active)
            optimizer.step()
            active = self._after(active, losses.detach())
        return self._results()

    def _losses(self, batch: StackedBatch, active: Sequence[_Place]) -> Tensor:
        """Of every place."""
        features = self.twin.network.features(self.twin.stacked(batch.inputs))
        logits = self.twin.apart(self.twin.network.classifier(features))
        each = F.cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), reduction="none").view(batch.shares.shape)
        losses = (each * batch.shares).sum(dim=1)
        if not self.is_personal:
            return losses
        return losses + self._penalties(batch, self.twin.apart(features), logits, active)

    def _penalties(self, batch: StackedBatch, features: Tensor, logits: Tensor, active: Sequence[_Place]) -> Tensor:
        """What each client's own hooks add, who see its own examples and nothing else."""
        terms: list[Tensor] = [logits.new_zeros(())] * self.twin.size
        for place in active:
            if type(place.hooks).penalty is Hooks.penalty:
                continue
            own, where = slice(batch.lengths[place.number]), place.number
            seen = Batch(
                place.client.bank.compute.inputs(batch.inputs[own, where].contiguous()), batch.labels[where, own]
            )
            penalty = place.hooks.penalty(seen, features[where, own].clone(), logits[where, own].clone())
            if penalty is not None:
                terms[where] = penalty
        return torch.stack(terms)

    def _correct(self, active: Sequence[_Place]) -> None:
        if self.is_personal:
            for place in active:
                place.hooks.on_gradient()
                if self.training.clip_norm is not None:
                    nn.utils.clip_grad_norm_(place.client.model.parameters(), self.training.clip_norm)

    def _after(self, active: Sequence[_Place], losses: Tensor) -> list[_Place]:
        """Those who are not done with this step."""
        if self.is_personal:
            for place in active:
                place.hooks.on_step_end()
        done = [place for place in active if place.take(losses)]
        if done:
            weights = self.twin.read()
            for place in done:
                place.finish(weights[place.number])
        return [place for place in active if place.trained is None]

    def _results(self) -> list[Trained]:
        """Everybody's, with the weights back in their places, where hooks may look at them."""
        results = [place.trained for place in self.places if place.trained is not None]
        if self.is_personal:
            rows = torch.zeros(self.twin.size, self.twin.layout.size)
            rows[: len(results)] = torch.stack([trained.weights.flat for trained in results])
            self.twin.write(rows)
        return results
