"""Global knowledge distillation, the local objective of FedGKD (Yao et al., 2021).

minimise F_k(w) + (gamma / 2) mean_i KL( h(wbar_t, x_i) || h(w, x_i) )
wbar_t = mean of the last min(M, t) global models, including the one that is broadcast

In round 1 there is no teacher but the initial network, and no term.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Tensors, Update
from fedfuse.core.weights import Weights, mean
from fedfuse.local.distillation import BufferedDistillation, recent_models, remember_models
from fedfuse.local.objective import Hooks, Visit
from fedfuse.runtime.part import Setting
from fedfuse.runtime.view import ServerView


class GlobalDistillation(BufferedDistillation):
    """Cross-entropy plus a pull towards the predictions of the average of the latest global models."""

    kind: Literal["global_distillation"] = "global_distillation"
    needs_weights: ClassVar[bool] = True
    coefficient: float = Field(0.1, ge=0, description="gamma / 2: weight of the term; FedGKD used .05 for ResNet-50")
    needs_projection_head: bool = Field(
        False, description="refuse models without a projection head; with one, FedGKD is FedGKD+"
    )

    def check(self, setting: Setting) -> None:
        if not self.needs_projection_head:
            return
        for prototype, architecture in setting.bank.architectures.items():
            if architecture.projection_head is None:
                raise ConfigError(
                    f"method.local.needs_projection_head is on, as in FedGKD+, but model '{prototype}' has no "
                    f"projection head; set models.{prototype}.projection_head, 256 in the paper"
                )

    def begin(self, visit: Visit) -> Hooks:
        task = visit.task
        if task.round == 1:
            return Hooks()
        # The average of one model is that model, so with M = 1 nothing has to travel.
        teacher = task.weights if self.buffer == 1 else Weights(task.extras["teacher"], task.weights.layout)
        return self.taught_by(visit, [teacher], [self.coefficient])

    def brief(self, view: ServerView, chosen: Mapping[int, str]) -> Mapping[int, Tensors]:
        if view.round == 1 or self.buffer == 1:
            return {}
        extras = {prototype: {"teacher": _average(view, prototype).flat} for prototype in set(chosen.values())}
        return {client: extras[prototype] for client, prototype in chosen.items()}

    def debrief(self, view: ServerView, updates: Sequence[Update], weights: Mapping[str, Weights]) -> Tensors:  # noqa: ARG002
        return remember_models(view, self.buffer)


def _average(view: ServerView, prototype: str) -> Weights:
    """wbar_t, BatchNorm statistics included."""
    models = recent_models(view, prototype)
    return mean(models, [1.0] * len(models))
