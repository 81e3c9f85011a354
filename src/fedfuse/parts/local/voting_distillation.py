"""Distillation from several global models with votes, the local objective of FedGKD-VOTE (Yao et al., 2021).

minimise F_k(w) + sum_{m=1}^{min(M, t - 1)} (gamma_m / 2) mean_i KL( h(w_{t-m+1}, x_i) || h(w, x_i) )
gamma_m / 2 = lambda exp(-L_m / beta) / sum_j exp(-L_j / beta),   L_m = validation loss of w_{t-m+1} on the server

In round 1 there is no global model but the initial network, which teaches nobody, and no term.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.weights import Weights
from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ClientContext, ServerView
from fedfuse.parts.local.distillation import BufferedDistillation, models_of, past_models
from fedfuse.parts.local.objective import Hooks

MODELS, COEFFICIENTS = "models", "coefficients"
"""The names under which past models and everybody's votes travel."""


class VotingDistillation(BufferedDistillation):
    """Cross-entropy plus a pull towards each of the latest global models, the better the stronger."""

    kind: Literal["voting_distillation"] = "voting_distillation"
    stacks: ClassVar[bool] = True
    separates_examples: ClassVar[bool] = True
    needs_weights: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True
    coefficient: float = Field(0.1, ge=0, description="lambda: weight of all terms together")
    vote_temperature: float | None = Field(
        None, gt=0, description="beta: the smaller, the more the best model counts; null is 1 / buffer, as printed"
    )

    def check(self, context: CheckContext) -> None:
        if not context.has_validation:
            raise ConfigError(
                "method.local voting_distillation weighs models by their loss on validation examples; "
                "set data.validation"
            )

    def begin(self, client: ClientContext) -> Hooks:
        current, sent = client.task.weights, client.received
        if COEFFICIENTS not in sent:
            return Hooks()
        past = [Weights(flat, current.layout) for flat in sent.get(MODELS, ())]
        return self.taught_by(client, [current, *past], sent[COEFFICIENTS].tolist())

    def passes(self, task: Task) -> float:
        return len(task.extras.get(COEFFICIENTS, ()))

    def broadcast(self, view: ServerView, chosen: Mapping[int, str]) -> Mapping[int, Tensors]:
        extras = {prototype: self._teachers(view, prototype) for prototype in set(chosen.values())}
        return {client: extras[prototype] for client, prototype in chosen.items()}

    def _teachers(self, view: ServerView, prototype: str) -> Tensors:
        """The models that teach, but for the one that is broadcast, and the weight of each, that one's first."""
        past = past_models(view, prototype)
        if past is None:
            return {}
        coefficients = {COEFFICIENTS: self.votes(view.memory[_losses(prototype)])}
        return {MODELS: past, **coefficients} if len(past) else coefficients

    def votes(self, losses: Tensor) -> Tensor:
        """gamma_m / 2 of each model from its validation loss; they sum to lambda."""
        beta = self.vote_temperature or 1 / self.buffer
        return (self.coefficient * (-losses / beta).softmax(dim=0)).float()

    def after_round(self, view: ServerView, updates: Sequence[Update], weights: Mapping[str, Weights]) -> Tensors:
        models = self.remember_models(view, weights)
        losses = {_losses(p): self._scored(view, p, new) for p, new in weights.items() if models_of(p) in models}
        return {**models, **losses}

    def _scored(self, view: ServerView, prototype: str, new: Weights) -> Tensor:
        """Validation losses of the next round's buffer, newest first; each model is scored once in its life."""
        known = view.memory.get(_losses(prototype))
        if known is None:
            known = _loss(view, prototype, view.weights[prototype]) if self.buffer_initial else torch.empty(0)
        return torch.cat([_loss(view, prototype, new), known])[: self.buffer]


def _losses(prototype: str) -> str:
    return f"losses/{prototype}"


def _loss(view: ServerView, prototype: str, weights: Weights) -> Tensor:
    return torch.tensor([view.score(prototype, weights).loss], dtype=torch.float64)
