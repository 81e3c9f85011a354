"""How much each teacher counts: by what is known of it, by what it says of itself, or by what it says.

    zT_j = sum_k w_k z_k(x_j)

What a client learns about itself comes from its own examples alone, so it is learnt once and stays with the client; the
server asks at the first visit and remembers (``asking.py``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from fedfuse.core.messages import Tensors, Update
from fedfuse.core.randomness import Key
from fedfuse.parts.base import MethodPart, Shapes
from fedfuse.parts.context import ClientContext, ServerView
from fedfuse.runtime.source import Source

SLOT = "scores"
"""The name of this slot in messages, states and memories, and what a task asks for."""

Coefficient = float | Tensor
"""How much a teacher counts: everywhere the same, or a table of public inputs x classes."""


@dataclass(frozen=True)
class Said:
    """One client's answer: what it says about some inputs (a row each), and of itself, in ``update.extras``."""

    update: Update
    outputs: Tensor = field(default_factory=lambda: torch.empty(0))
    are_logits: bool = False

    @property
    def probabilities(self) -> Tensor:
        """Rows that are not negative and sum to one, whatever a client sent."""
        if self.are_logits:
            return self.outputs.softmax(dim=1)
        positive = self.outputs.double().clamp_min(0)
        return positive / positive.sum(dim=1, keepdim=True).clamp_min(1e-30)


class Scores(MethodPart):
    """Teacher weighting: how much each teacher counts."""

    kind: str
    per_input: ClassVar[bool] = False
    """Whether clients' own scores have a row for every public input."""
    needs_extractor: ClassVar[bool] = False
    """Whether clients judge by the features of the model that the federation began with."""
    for_models: ClassVar[bool] = True
    """Whether it can weigh models that the server asks itself."""
    for_predictions: ClassVar[bool] = True
    """Whether it can weigh predictions that clients send."""

    def inputs(self, source: Source, common: Key) -> Source:
        """The public inputs that clients are asked about, the same for all who have the common key."""
        return source

    def learn(self, client: ClientContext) -> Tensors:
        """The client: what it finds out about itself and keeps."""
        return {}

    def say(self, learnt: Tensors, client: ClientContext, source: Source) -> Tensors:
        """The client: its scores for these inputs."""
        return {}

    def spec(self, inputs: int, classes: int) -> Shapes:
        """Names and shapes of the scores that a client sends; empty if it is not asked."""
        return {}

    @abstractmethod
    def weights(self, said: Sequence[Said]) -> list[Tensor]:
        """One tensor per client that multiplies its n x K predictions."""

    def of_models(self, view: ServerView, updates: Sequence[Update]) -> list[Coefficient]:
        """How much each client's model counts, on any scale."""
        shape, device = (len(view.public), view.bank.classes), view.bank.compute.device
        weights = self.weights([Said(update.of(SLOT)) for update in updates])
        return [weight.expand(shape).to(device) for weight in weights]

    @property
    def asks_clients(self) -> bool:
        """Whether clients say something of themselves."""
        return bool(self.spec(1, 1))
