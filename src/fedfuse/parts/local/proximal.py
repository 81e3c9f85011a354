"""The proximal term of FedProx (Li et al., 2020).

minimise F_k(w) + (mu / 2) ||w - x_{t-1}||^2,   i.e.   gradient += mu (w - x_{t-1})
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field

from fedfuse.models import Classifier
from fedfuse.parts.context import ClientContext
from fedfuse.parts.local.objective import Hooks, Objective


class Proximal(Objective):
    """Cross-entropy plus a pull towards the weights that the server sent."""

    kind: Literal["proximal"] = "proximal"
    stacks: ClassVar[bool] = True
    separates_examples: ClassVar[bool] = True
    strength: float = Field(0.01, ge=0, description="mu: how strongly a client is held near the received weights")

    def begin(self, client: ClientContext) -> Hooks:
        return _ProximalHooks(client.model, self.strength)


class _ProximalHooks(Hooks):
    def __init__(self, model: Classifier, strength: float) -> None:
        self.parameters = list(model.parameters())
        self.anchor = [p.detach().clone() for p in self.parameters]
        self.strength = strength

    @torch.no_grad()
    def on_gradient(self) -> None:
        for parameter, anchor in zip(self.parameters, self.anchor, strict=True):
            if parameter.grad is not None:
                parameter.grad.add_(parameter - anchor, alpha=self.strength)
