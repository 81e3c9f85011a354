"""Votes on public inputs, as PATE (Papernot et al., 2017 and 2018) and FedKT (Li, He and Song, 2021) count them.

    a client's vote on x      v = one_hot( argmax_c  #{teachers of the client that say c} + N(0, sigma^2) )
    what is taught of x       one_hot( argmax_c  sum_k v_kc ), if that class has ``least`` of the votes; else nothing

A client has one teacher, its own model, or several: then its examples are cut into as many parts, each part trains a
teacher from the weights that the client was sent at its first visit (never from its own model, which has seen all
examples), and one example can change the votes of one teacher only. With
``deviation`` this is GNMax, and the vote protects every example of the client (FedKT's second level). Noise that
protects the client as a whole (its first level) is a link of ``upload``: a table of n votes is sqrt(n) long.

What is below ``least`` is left out after the noise, so it costs nothing; nor does it save anything, as the confident
GNMax would by an analysis that depends on the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, Self

import torch
import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor

from fedfuse.core.releases import Multiplier, Release
from fedfuse.core.weights import Weights
from fedfuse.parts.context import ClientContext, CombinedPredictions
from fedfuse.parts.local.loop import train
from fedfuse.parts.local.objective import Hooks
from fedfuse.parts.protocol.base import ClientResult
from fedfuse.parts.protocol.nothing import MODEL
from fedfuse.parts.protocol.predictions import Predictions
from fedfuse.runtime.predict import logits_on
from fedfuse.runtime.source import Source

SHARES_OFF = 1e-9
"""By how much clients' shares may miss their exact sum: six sixths, added up, are a little below 1."""
FIRST = "first"
"""Where a client's state has the weights that its teachers begin with."""


class Votes(Predictions):
    """Clients say one class for each public input, and the class with most votes is what counts."""

    kind: Literal["votes"] = "votes"  # type: ignore[assignment]
    payload_of: ClassVar[Literal["examples", "model"]] = "model"
    sends_extras: ClassVar[bool] = False
    output: Literal["probabilities"] = Field("probabilities", description="of which a vote is all for one class")
    temperature: None = Field(None, description="the winner takes all: there is nothing to reduce")
    teachers: int = Field(
        1, ge=1, description="models of one client that vote, each trained on a part of its examples; 1: its own model"
    )
    deviation: Multiplier | None = Field(
        None,
        description="sigma: noise on the number of a client's teachers that say a class; auto: as privacy.budget needs",
    )
    least: float = Field(0.0, ge=0, le=1, description="share of all votes without which an input teaches nothing")

    @model_validator(mode="after")
    def _nothing_fits_into_no_bits(self) -> Self:
        if self.least and self.bits_down:
            raise ValueError("least leaves some inputs without a class, which bits_down has no bits for; remove one")
        if self.least and self.distillation is not None and self.distillation.loss != "kl":
            raise ValueError("least leaves some inputs without a class, which only distillation.loss kl passes over")
        return self

    def release(self, inputs: int) -> Release | None:
        """What a client's votes about so many inputs give away of an example, which can move two counts of each."""
        if self.deviation is None:
            return None
        assert isinstance(self.deviation, float), "chosen before round 1"
        return Release(self.deviation / self.sensitivity_of_votes(inputs))

    @staticmethod
    def sensitivity_of_votes(inputs: int) -> float:
        """How far, in Euclidean norm, one teacher can move the counts of so many inputs."""
        return math.sqrt(2 * inputs)

    def as_sent(self, logits: Tensor) -> Tensor:
        return F.one_hot(logits.argmax(dim=1), logits.shape[1]).float()

    def answer(self, client: ClientContext, trained: Weights) -> ClientResult:
        own = super().answer(client, trained)
        if self.teachers == 1 and self.deviation is None:
            return own
        public = self.public(client.public, client.common, client.task.round)
        counts = torch.stack([self.as_sent(said) for said in self._said(client, public)]).sum(dim=0)
        if self.deviation is not None:
            assert isinstance(self.deviation, float), "chosen before round 1"
            counts = client.secret.child("votes").noised(counts, self.deviation)
        kept = {} if self.teachers == 1 else {FIRST: self._first(client).flat}
        return replace(own, predictions=self.as_sent(counts), state={**own.state, **kept})

    def _said(self, client: ClientContext, public: Source) -> Iterator[Tensor]:
        """What each teacher says about the public inputs."""
        if self.teachers == 1:
            yield logits_on(public, client.model)
            return
        start = self._start_of_teachers(client)
        order = torch.randperm(len(client.examples), generator=client.key.child("teachers").torch())
        for number, part in enumerate(order.tensor_split(self.teachers)):
            model = client.bank.lend(client.task.prototype, start, role="voter")
            if len(part):
                own = replace(client.below("teacher", number), model=model, examples=client.examples.select(part))
                train(own, Hooks())
                model.zero_grad()
            yield logits_on(public, model)

    def _start_of_teachers(self, client: ClientContext) -> Weights:
        """Of no example: what the client was sent first, and has learnt since on public inputs alone."""
        model = client.bank.lend(client.task.prototype, self._first(client), role="voter")
        self.distil_before(replace(client, model=model))
        return Weights.of(model, client.start.layout)

    def _first(self, client: ClientContext) -> Weights:
        return Weights(client.state[FIRST], client.start.layout) if MODEL in client.state else client.task.weights

    def combine(self, outputs: Sequence[Tensor], coefficients: Sequence[Tensor]) -> CombinedPredictions:
        """Counted in client order."""
        total = torch.zeros_like(outputs[0], dtype=torch.float64)
        for said, coefficient in zip(outputs, coefficients, strict=True):
            total += coefficient.double() * said.double()
        enough = total.amax(dim=1) >= self.least - SHARES_OFF
        return CombinedPredictions(self.as_sent(total) * enough.unsqueeze(1), are_logits=False, answered=enough)
