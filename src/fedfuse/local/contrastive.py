"""The model-contrastive loss of MOON (Li, He and Song, 2021).

minimise F_k(w) + mu mean_x [ -log( e^{cos(z, z_glob) / tau} / (e^{cos(z, z_glob) / tau} + e^{cos(z, z_prev) / tau}) ) ]

z, z_glob and z_prev are the features of x under w, under the received weights and under this client's last local model.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from fedfuse.core.messages import Tensors
from fedfuse.core.weights import Weights
from fedfuse.local.objective import Batch, Hooks, Objective, Visit

PREVIOUS = "previous"
"""The entry of a client's state: the flat weights that it sent at its last visit."""


class Contrastive(Objective):
    """Cross-entropy plus a pull of the features towards the received model's, away from the client's last one's."""

    kind: Literal["contrastive"] = "contrastive"
    needs_weights: ClassVar[bool] = True
    remembers_weights: ClassVar[bool] = True
    strength: float = Field(1.0, ge=0, description="mu: weight of the contrastive term; the paper took 5 for CIFAR-10")
    temperature: float = Field(0.5, gt=0, description="tau: divides the cosines")

    def begin(self, visit: Visit) -> Hooks:
        if self.strength == 0:
            return Hooks()
        return _Remembering(visit) if PREVIOUS not in visit.state else _Contrasting(visit, self)


class _Remembering(Hooks):
    """A first visit: without a negative the loss is -log 1 = 0, so there is a model to keep but nothing to add."""

    def __init__(self, visit: Visit) -> None:
        self.visit = visit

    def state(self) -> Tensors:
        return {PREVIOUS: Weights.of(self.visit.model, self.visit.task.weights.layout).flat}


class _Contrasting(_Remembering):
    def __init__(self, visit: Visit, objective: Contrastive) -> None:
        super().__init__(visit)
        task, bank = visit.task, visit.bank
        previous = Weights(visit.state[PREVIOUS], task.weights.layout)
        self.received = bank.lend(task.prototype, task.weights, role="contrastive/received").eval()
        self.previous = bank.lend(task.prototype, previous, role="contrastive/previous").eval()
        self.objective = objective

    def penalty(self, batch: Batch, features: Tensor, logits: Tensor) -> Tensor:  # noqa: ARG002
        with torch.no_grad():
            towards, away = self.received.features(batch.inputs), self.previous.features(batch.inputs)
        gap = F.cosine_similarity(features, away, dim=1) - F.cosine_similarity(features, towards, dim=1)
        # -log(e^a / (e^a + e^b)) = log(1 + e^(b - a)), which cannot overflow
        return self.objective.strength * F.softplus(gap / self.objective.temperature).mean()
