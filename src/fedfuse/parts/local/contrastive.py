"""The model-contrastive loss of MOON (Li, He and Song, 2021).

minimise F_k(w) + mu mean_x [ -log( p / (p + q) ) ]
p = e^{cos(z, z_glob) / tau},   q = sum_j e^{cos(z, z_j) / tau}

z, z_glob and z_j are the features of x under w, under the received weights and under this client's last local models;
the paper's experiments have one of those.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from fedfuse.core.messages import Task, Tensors
from fedfuse.core.weights import Weights
from fedfuse.parts.context import ClientContext
from fedfuse.parts.local.objective import Batch, Hooks, Objective

PREVIOUS = "previous"
"""The entry of a client's state: the flat weights that it sent at its last visits, newest first, one row each."""


class Contrastive(Objective):
    """Cross-entropy plus a pull of the features towards the received model's, away from the client's last ones'."""

    kind: Literal["contrastive"] = "contrastive"
    stacks: ClassVar[bool] = True
    separates_examples: ClassVar[bool] = True
    needs_weights: ClassVar[bool] = True
    remembers_weights: ClassVar[bool] = True
    strength: float = Field(1.0, ge=0, description="mu: weight of the contrastive term; the paper took 5 for CIFAR-10")
    temperature: float = Field(0.5, gt=0, description="tau: divides the cosines")
    previous: int = Field(1, ge=1, description="how many of its last local models a client keeps away from")

    def begin(self, client: ClientContext) -> Hooks:
        if self.strength == 0:
            return Hooks()
        return (_Contrasting if PREVIOUS in client.state else _Remembering)(client, self)

    def passes(self, task: Task) -> float:
        """Of a client that was here before: of its first visit the server knows nothing."""
        return 1 + self.previous if self.strength else 0


class _Remembering(Hooks):
    """A first visit: without a negative the loss is -log 1 = 0, so there is a model to keep but nothing to add."""

    def __init__(self, client: ClientContext, objective: Contrastive) -> None:
        self.client = client
        self.objective = objective

    def state(self) -> Tensors:
        own = Weights.of(self.client.model, self.client.task.weights.layout).flat.unsqueeze(0)
        kept = [own, self.client.state[PREVIOUS]] if PREVIOUS in self.client.state else [own]
        return {PREVIOUS: torch.cat(kept)[: self.objective.previous]}


class _Contrasting(_Remembering):
    def __init__(self, client: ClientContext, objective: Contrastive) -> None:
        super().__init__(client, objective)
        task, bank = client.task, client.bank
        self.received = bank.lend(task.prototype, task.weights, role="contrastive/received").eval()
        self.previous = [
            bank.lend(task.prototype, Weights(flat, task.weights.layout), role=f"contrastive/{PREVIOUS}/{place}").eval()
            for place, flat in enumerate(client.state[PREVIOUS])
        ]

    def penalty(self, batch: Batch, features: Tensor, logits: Tensor) -> Tensor:
        with torch.no_grad():
            towards = self.received.features(batch.inputs)
            away = [network.features(batch.inputs) for network in self.previous]
        gaps = torch.stack([F.cosine_similarity(features, other, dim=1) for other in away])
        gaps = gaps - F.cosine_similarity(features, towards, dim=1)
        # -log(e^a / (e^a + sum_j e^(b_j))) = log(1 + sum_j e^(b_j - a)), which cannot overflow
        crowd = (gaps / self.objective.temperature).logsumexp(dim=0)
        return self.objective.strength * F.softplus(crowd).mean()
