"""Global knowledge distillation, the local objective of FedGKD (Yao et al., 2021).

minimise F_k(w) + (gamma / 2) mean_i KL( h(wbar_t, x_i) || h(w, x_i) )
wbar_t = mean of the last min(M, t - 1) global models, including the one that is broadcast

In round 1 there is no global model but the initial network, which teaches nobody, and no term.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.weights import Weights, mean
from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ClientContext, ServerView
from fedfuse.parts.local.distillation import BufferedDistillation, past_models
from fedfuse.parts.local.objective import Hooks

TEACHER = "teacher"
"""The name under which the teacher travels."""


class GlobalDistillation(BufferedDistillation):
    """Cross-entropy plus a pull towards the predictions of the average of the latest global models."""

    kind: Literal["global_distillation"] = "global_distillation"
    stacks: ClassVar[bool] = True
    separates_examples: ClassVar[bool] = True
    needs_weights: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True
    coefficient: float = Field(0.1, ge=0, description="gamma / 2: weight of the term; FedGKD used .05 for ResNet-50")
    needs_projection_head: bool = Field(
        False, description="refuse models without a projection head; with one, FedGKD is FedGKD+"
    )

    def check(self, context: CheckContext) -> None:
        if not self.needs_projection_head:
            return
        for prototype, architecture in context.bank.architectures.items():
            if architecture.projection_head is None:
                raise ConfigError(
                    f"method.local.needs_projection_head is on, as in FedGKD+, but model '{prototype}' has no "
                    f"projection head; set models.{prototype}.projection_head, 256 in the paper"
                )

    def begin(self, client: ClientContext) -> Hooks:
        sent, current = client.received.get(TEACHER), client.task.weights
        if sent is None:
            return Hooks()
        teacher = Weights(sent, current.layout) if len(sent) else current
        return self.taught_by(client, [teacher], [self.coefficient])

    def passes(self, task: Task) -> float:
        return float(TEACHER in task.extras)

    def broadcast(self, view: ServerView, chosen: Mapping[int, str]) -> Mapping[int, Tensors]:
        teachers = {prototype: _teacher(view, prototype) for prototype in set(chosen.values())}
        told = ((client, teachers[prototype]) for client, prototype in chosen.items())
        return {client: {TEACHER: teacher} for client, teacher in told if teacher is not None}

    def after_round(self, view: ServerView, updates: Sequence[Update], weights: Mapping[str, Weights]) -> Tensors:
        return self.remember_models(view, weights)


def _teacher(view: ServerView, prototype: str) -> Tensor | None:
    """wbar_t, BatchNorm statistics included; empty if it is the broadcast model, which need not travel twice."""
    past, current = past_models(view, prototype), view.weights[prototype]
    if past is None:
        return None
    if not len(past):
        return current.flat[:0]
    models = [current, *(Weights(flat, current.layout) for flat in past)]
    return mean(models, [1.0] * len(models)).flat
