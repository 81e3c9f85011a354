"""The training loop of clients whose examples are private: DP-SGD (Abadi et al., Deep Learning with Differential
Privacy, CCS 2016) inside any local objective.

    g = ( sum_{i drawn} clip_C(gradient of example i) + N(0, (z C)^2 I) ) / (q n)        then the optimiser's own step

Each example is drawn with probability q at every step, by itself. What an objective adds to the loss is part of the
gradients of single examples; what it does to the whole gradient, and losses on public inputs, come after the noise. The
loss is not told to anybody: nobody has added noise to it.

Dropout and augmentation give a batch's examples their random numbers by their places in it. Who knew the numbers would
see one example more move all behind it to other ones; so they are as secret as the noise.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from fedfuse.parts.context import ClientContext
from fedfuse.parts.local.example_gradients import ExampleGradients
from fedfuse.parts.local.linear_gradients import LinearGradients, is_linear
from fedfuse.parts.local.objective import Hooks
from fedfuse.parts.local.steps import LoopStats
from fedfuse.runtime.batch_loader import BatchLoader


def train_privately(client: ClientContext, hooks: Hooks, extra_loss: Callable[[], Tensor] | None = None) -> LoopStats:
    """As ``loop.train``, by steps that protect every example."""
    model, training, size = client.model, client.training, len(client.examples)
    optimizer = training.optimizer.build(model, client.learning_rate)
    steps = training.steps(size)
    model.train()
    gradient = PrivateGradient(client, hooks)
    with client.secret.child("dropout").default_generator():
        for step, rate in enumerate(training.rates(client.learning_rate, steps)):
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.zero_grad()
            if extra_loss is not None:
                extra_loss().backward()
            gradient.add(step)
            hooks.on_gradient()
            if training.clip_norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), training.clip_norm)
            optimizer.step()
            hooks.on_step_end()
    return LoopStats(steps, None)


class PrivateGradient:
    """One client's gradients in one round."""

    def __init__(self, client: ClientContext, hooks: Hooks) -> None:
        privacy, size = client.training.privacy, len(client.examples)
        assert privacy is not None, "DP-SGD was chosen"
        assert isinstance(privacy.multiplier, float), "chosen before round 1"
        self.client, self.size, self.rate = client, size, client.training.sampling_rate(size)
        self.deviation = privacy.multiplier * privacy.norm
        self.loader = BatchLoader(client.examples, client.transform, client.bank.compute, trims=False)
        by_hand = LinearGradients if is_linear(client.model) else ExampleGradients
        self.gradients = by_hand(client.model, hooks, privacy.norm)

    def add(self, step: int) -> None:
        """Add that of one step to what the parameters have already."""
        secret = self.client.secret.child("privacy", step)
        where = secret.child("sample").sample(self.size, self.rate)
        of_views = self.client.secret.child("step", step, "augment")
        views = of_views.torch() if self.client.transform.augments else None
        sums = self.gradients.clipped_sum(*self.loader.batch(where, views))
        noised = secret.noised(torch.cat([own.reshape(-1).cpu() for own in sums]), self.deviation)
        pieces = (noised / (self.rate * self.size)).split([own.numel() for own in sums])
        for parameter, piece in zip(self.gradients.parameters.values(), pieces, strict=True):
            own = piece.view(parameter.shape).to(parameter.device)
            parameter.grad = own if parameter.grad is None else parameter.grad + own
