"""Gaussian noise on a client's update: y <- y + N(0, sigma^2 I), with random numbers that only this client has.

    deviation     sigma itself
    multiplier    sigma in clip norms S: with ``clip`` before it, this is the Gaussian mechanism
    shared        sigma / sqrt(m) from each of a round's m clients, so that their sum has the noise of one mechanism

Noise of one's own protects against everybody, the server included. Shared noise protects against those who see nothing
but the sum, for which the server must be trusted. What that comes to over a run, ``privacy`` counts (docs/privacy.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.messages import Tensors
from fedfuse.core.releases import Multiplier, check_one_measure
from fedfuse.parts.base import CheckContext, Shapes
from fedfuse.parts.context import ClientContext, ServerView
from fedfuse.parts.protocol.base import PREDICTIONS
from fedfuse.parts.tensor_spec import TensorSpec
from fedfuse.parts.upload.updates import OnUpdates
from fedfuse.runtime.bank import ModelBank

PARTIES = "parties"
"""What the server tells clients that share their noise: how many of them there are."""
MOST_PARTIES = 2**53
"""Above this, whole numbers are not told apart."""


def parties_in(told: Tensor) -> int:
    """What the server said, which is how noise is both made and counted."""
    if told.numel() != 1 or not 1 <= float(told) < MOST_PARTIES or float(told) != int(told):
        raise DataError("the number of clients that the server sent for shared noise is no whole number above 0")
    return int(told)


class Noise(OnUpdates):
    """Updates with Gaussian noise."""

    kind: Literal["noise"] = "noise"
    deviation: float | None = Field(
        None, gt=0, description="sigma: standard deviation of the noise on every parameter or prediction"
    )
    multiplier: Multiplier | None = Field(
        None,
        description="sigma over the norm of the clip before it, or over the longest table of probabilities; auto: as "
        "much as privacy.budget needs",
    )
    shared: bool = Field(
        False,
        description="each of a round's m clients adds sigma / sqrt(m): their sum is protected, a single update is not",
    )

    @model_validator(mode="after")
    def _one_measure(self) -> Self:
        check_one_measure(self.deviation, self.multiplier)
        return self

    def check(self, context: CheckContext) -> None:
        for prototype in context.bank.prototypes if not context.sends_predictions else ():
            if context.bank.layout(prototype).buffers:
                raise ConfigError(
                    f"method.upload noise: the BatchNorm statistics of '{prototype}' would travel without noise; give "
                    "the model another norm"
                )

    def changed(self, update: Tensor, client: ClientContext) -> Tensor:
        deviation = self.deviation_of(client.bound)
        if self.shared:
            deviation /= math.sqrt(parties_in(client.received[PARTIES]))
        if client.bound is not None and not bool(update.isfinite().all()):
            update = torch.zeros_like(update)  # no bound holds for it, and that it came to nothing is nobody's business
        return client.secret.child("noise").noised(update, deviation)

    def deviation_of(self, bound: float | None) -> float:
        """sigma, for updates that are at most so long."""
        if self.deviation is not None:
            return self.deviation
        assert bound is not None, "the recipe asks for a bound before it"
        assert isinstance(self.multiplier, float), "chosen before round 1"
        return self.multiplier * bound

    def arrives(self, sent: Shapes) -> Shapes:
        """Predictions with noise are in no range."""
        if PREDICTIONS not in sent:
            return sent
        spec = TensorSpec.of(sent[PREDICTIONS])
        return {**sent, PREDICTIONS: TensorSpec(spec, spec.dtype)}

    def spec(self, sent: Shapes, prototype: str, bank: ModelBank) -> Shapes:
        return super().spec(self.arrives(sent), prototype, bank)

    def broadcast(self, view: ServerView, chosen: Mapping[int, str]) -> Mapping[int, Tensors]:
        if not self.shared:
            return {}
        parties = Counter(chosen.values())
        return {client: {PARTIES: torch.tensor(parties[prototype])} for client, prototype in chosen.items()}
