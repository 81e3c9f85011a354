"""The one training loop of every client and every method. parts/local/stacked.py is the same for several at a time."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from fedfuse.parts.context import ClientContext
from fedfuse.parts.local.objective import Batch, Hooks
from fedfuse.parts.local.steps import LoopStats, Watch, steps_of
from fedfuse.runtime.batch_loader import BatchLoader


def train(client: ClientContext, hooks: Hooks, extra_loss: Callable[[], Tensor] | None = None) -> LoopStats:
    """Run the client's epochs on its model, calling the hooks at their moments; ``extra_loss`` is a further one."""
    model, training = client.model, client.training
    loader = BatchLoader(client.examples, client.transform, client.bank.compute)
    optimizer = training.optimizer.build(model, client.learning_rate)
    rates = training.rates(client.learning_rate, training.steps(len(client.examples)))
    watch = Watch(training.stop_above)
    model.train()
    losses: list[Tensor] = []
    with client.key.child("dropout").default_generator():
        for step in steps_of(client):
            rate = next(rates)
            for group in optimizer.param_groups:
                group["lr"] = rate
            batch = Batch(*loader.batch(step.where, step.views))
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
            if watch.sees_divergence(step.epoch, losses[-1]):
                return LoopStats.of(losses, diverged=True)
    return LoopStats.of(losses)
