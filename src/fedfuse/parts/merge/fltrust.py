"""FLTrust (Cao et al., FLTrust: Byzantine-robust Federated Learning via Trust Bootstrapping, NDSS 2021).

The server trains on a few labelled examples of its own, here the validation split, as a client would:

    g_0 = what the server learns,   g_k = x_k - x
    TS_k = max(0, cos(g_k, g_0))                                                how much client k is trusted
    x <- x + sum_k TS_k (|g_0| / |g_k|) g_k / sum_k TS_k

Any number of clients may be hostile, if the server's own examples are like the honest ones'. Clients are all as long as
the server's own step, so ``training`` should be the clients'. Where nobody is trusted, the parameters stay. BatchNorm
statistics are medians.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.sums import Sum
from fedfuse.core.weights import Weights
from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ClientContext, ServerView
from fedfuse.parts.local.loop import train
from fedfuse.parts.local.objective import Hooks
from fedfuse.parts.merge.robust import RobustMerge
from fedfuse.runtime.training import TrainingSettings

SERVER = -1
"""The number of the server among the clients."""


class FLTrust(RobustMerge):
    """Clients count by how much they agree with what the server learns from examples of its own."""

    kind: Literal["fltrust"] = "fltrust"
    training: TrainingSettings = Field(
        default_factory=TrainingSettings, description="how the server trains on its examples; as clients do is best"
    )

    def check(self, context: CheckContext) -> None:
        if not context.has_validation:
            raise ConfigError(
                "method.merge fltrust trains on labelled examples of the server's own; set data.validation"
            )

    def parameters(self, view: ServerView, prototype: str, updates: Sequence[Update]) -> tuple[Tensor, Tensors]:
        sent = view.weights[prototype]
        own = self.reference(view, prototype) - sent.parameters.double()
        trust = [_cosine(own, _move(update, sent)) for update in updates]
        moved = Sum(len(own))
        for update, score in zip(updates, trust, strict=True):
            if score > 0:
                move = _move(update, sent)
                moved.add(move, score / sum(max(0.0, one) for one in trust) * float(own.norm() / move.norm()))
        return sent.parameters.double() + moved.total, {}

    def reference(self, view: ServerView, prototype: str) -> Tensor:
        """The parameters that the server ends up with, from those that it broadcast."""
        sent, validation = view.weights[prototype], view.validation
        assert validation is not None, "checked before round 1"
        examples = validation.examples.select(torch.arange(len(validation.examples)))
        model, key = view.bank.lend(prototype, sent), view.key.child("reference")
        training = self.training.of(key, key)
        task = Task(view.round, SERVER, prototype, sent)
        context = ClientContext(
            task=task,
            model=model,
            start=sent,
            examples=examples,
            transform=validation.transform,
            training=training,
            learning_rate=training.rate(1, 1),
            bank=view.bank,
            source=None,
            test_inputs=None,
            received={},
            state={},
            key=key,
            common=view.common,
        )
        train(context, Hooks(), None)
        model.zero_grad()
        return Weights.of(model, sent.layout).parameters.double()


def _move(update: Update, sent: Weights) -> Tensor:
    return update.weights.here.parameters.double() - sent.parameters.double()


def _cosine(own: Tensor, move: Tensor) -> float:
    lengths = float(own.norm() * move.norm())
    return float(own @ move) / lengths if lengths else 0.0
