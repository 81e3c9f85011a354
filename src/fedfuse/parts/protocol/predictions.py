"""Predictions on public inputs instead of weights: a client's model never leaves it.

Up travel the model's outputs for this round's n public inputs, 4 n K bytes (or fewer by ``upload``), and once what the
scores need. Down travels, where clients distil it, what the server makes of them: 4 n K bytes (or few bits each).

    consensus:           z_j = sum_k w_k z_k(x_j)       w_k by ``scores``
    entropy reduction:   z_j <- softmax(z_j / T)        (DS-FL)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.parts.bits import pack, unpack
from fedfuse.parts.claims import sizes_within
from fedfuse.parts.context import ClientContext, CombinedPredictions, ServerView
from fedfuse.parts.protocol.base import PREDICTIONS, Carries, ClientResult, Expected, ExtraLoss
from fedfuse.parts.protocol.client_distillation import ClientDistillation
from fedfuse.parts.protocol.nothing import MODEL, KeptModel
from fedfuse.parts.tensor_spec import TensorSpec
from fedfuse.runtime.predict import logits_on
from fedfuse.runtime.source import Source

CONSENSUS, LATEST = "consensus", "consensus_round"
ROUNDING = 1e-3
"""By how much a probability may be above 1, whatever device and precision it was computed with."""


class Predictions(KeptModel):
    """Clients send what their models say about the public inputs."""

    kind: Literal["predictions"] = "predictions"
    payload_of: ClassVar[Literal["examples", "model"]] = "model"
    sends_extras: ClassVar[bool] = False
    carries: ClassVar[Carries] = "predictions"
    needs_source: ClassVar[bool] = True
    output: Literal["probabilities", "logits"] = Field("probabilities", description="what clients send")
    inputs: int | None = Field(
        None, ge=2, description="each round is about so many public inputs, drawn at random; all without. FedMD: 5000"
    )
    temperature: float | None = Field(
        None, gt=0, description="entropy reduction of the combined predictions: softmax(z / T). DS-FL: 0.1"
    )
    distillation: ClientDistillation | None = Field(
        None, description="how clients learn from what the server makes of all predictions"
    )
    bits_down: int | None = Field(
        None, ge=1, le=8, description="bits of each probability on the way down; 1: only the most probable class (CFD)"
    )

    @model_validator(mode="after")
    def _bits_are_of_probabilities(self) -> Self:
        if self.output == "logits" and self.bits_down:
            raise ValueError("bits_down are bits of probabilities, but output is logits")
        return self

    @property
    def needs_student(self) -> bool:
        return self.distillation is not None and self.distillation.of == "student"

    @property
    def sends_probabilities(self) -> bool:
        return self.output == "probabilities"

    def longest(self, inputs: int) -> float | None:
        """A row of probabilities is at most 1 long."""
        return math.sqrt(inputs) if self.sends_probabilities else None

    @property
    def trains_freely(self) -> bool:
        return self.distillation is None or self.distillation.when == "before"

    def rows(self, inputs: int, common: Key, number: int) -> Tensor | None:
        if self.inputs is None:
            return None
        order = torch.randperm(inputs, generator=common.child("round", number, "public inputs").torch())
        return order[: self.inputs].sort().values

    def distil_before(self, client: ClientContext) -> bool:
        if self.distillation is None or self.distillation.when != "before" or CONSENSUS not in client.received:
            return False
        self.distillation.distil_before(client, *self._taught_here(client))
        return True

    @contextmanager
    def training(self, client: ClientContext) -> Iterator[ExtraLoss | None]:
        if self.distillation is not None and self.distillation.when == "along" and CONSENSUS in client.received:
            yield self.distillation.extra_loss(client, *self._taught_here(client))
        else:
            yield None

    def answer(self, client: ClientContext, trained: Weights) -> ClientResult:
        public = self.public(client.public, client.common, client.task.round)
        kept = client.start if self.distillation is not None and self.distillation.keep == "distilled" else trained
        said = self.as_sent(logits_on(public, client.model))
        return ClientResult(predictions=said, state={MODEL: kept.flat}, bound=self.longest(len(public)))

    def passes(self, task: Task, inputs: int, steps: float) -> float:
        if self.distillation is None or CONSENSUS not in task.extras:
            return inputs
        return inputs + self.distillation.passes(inputs, steps)

    def broadcast(self, view: ServerView, chosen: Mapping[int, str]) -> Mapping[int, Tensors]:
        taught = {prototype: self._taught(view, prototype) for prototype in dict.fromkeys(chosen.values())}
        return {client: taught[prototype] for client, prototype in chosen.items()}

    def expects(self, view: ServerView, task: Task) -> Expected:
        rows = self.rows(len(view.public), view.common, view.round)
        shape = (len(view.public if rows is None else rows), view.bank.classes)
        return Expected(
            predictions=TensorSpec(shape, least=0, most=1 + ROUNDING) if self.sends_probabilities else shape
        )

    def within_bounds(self, said: Sequence[Tensors], examples: Sequence[int]) -> list[Tensors]:
        """Nobody's logits are much louder than the others'; probabilities cannot be."""
        if self.sends_probabilities:
            return list(said)
        return sizes_within(said, PREDICTIONS, lambda own: float(own[PREDICTIONS].double().norm()))

    def combine(self, outputs: Sequence[Tensor], coefficients: Sequence[Tensor]) -> CombinedPredictions:
        """Summed in client order."""
        total = torch.zeros_like(outputs[0], dtype=torch.float64)
        for said, coefficient in zip(outputs, coefficients, strict=True):
            total += coefficient.double() * said.double()
        mean = self._within_range(total.float())
        reduced = mean if self.temperature is None else (mean / self.temperature).softmax(dim=1)
        return CombinedPredictions(reduced, self._are_logits)

    def _within_range(self, mean: Tensor) -> Tensor:
        """Noise may have made probabilities negative: then the nearest rows that are probabilities."""
        return onto_simplex(mean) if self.sends_probabilities and bool((mean < 0).any()) else mean

    def as_sent(self, logits: Tensor) -> Tensor:
        return logits.softmax(dim=1) if self.output == "probabilities" else logits

    def after_round(
        self, view: ServerView, updates: Sequence[Update], predictions: CombinedPredictions | None
    ) -> Tensors:
        if self.distillation is None or self.distillation.of != "consensus" or predictions is None:
            return view.memory
        return {CONSENSUS: predictions.outputs, LATEST: torch.tensor(view.round)}

    @property
    def _are_logits(self) -> bool:
        """Whether combined predictions are logits; those with reduced entropy never are."""
        return self.output == "logits" and self.temperature is None

    def _taught(self, view: ServerView, prototype: str) -> Tensors:
        """What the server tells clients of a prototype: predictions for the public inputs of the round before."""
        if self.distillation is None or view.round == 1:
            return {}
        if self.distillation.of == "student":
            public = self.public(view.public, view.common, view.round - 1)
            logits = logits_on(public, view.bank.lend(prototype, view.weights[prototype]))
            table = logits if self._are_logits else logits.softmax(dim=1)
        elif int(view.memory.get(LATEST, torch.tensor(0))) == view.round - 1:
            table = view.memory[CONSENSUS]
        else:
            return {}  # nobody was heard in the last round
        return {CONSENSUS: table if self.bits_down is None else pack(table, self.bits_down)}

    def _taught_here(self, client: ClientContext) -> tuple[Source, Tensor, bool]:
        """The client's end of ``_taught``."""
        public = self.public(client.public, client.common, client.task.round - 1)
        table = client.received[CONSENSUS]
        if self.bits_down is not None:
            table = unpack(table, self.bits_down, len(public), client.bank.classes)
        return public, table, self._are_logits


def onto_simplex(rows: Tensor) -> Tensor:
    """For every row the nearest one that is not negative and sums to one (Duchi et al., 2008)."""
    ordered = rows.double().sort(dim=1, descending=True).values
    places = torch.arange(1, rows.shape[1] + 1, dtype=torch.float64)
    excess = (ordered.cumsum(dim=1) - 1) / places
    last = (ordered > excess).sum(dim=1, keepdim=True) - 1
    return (rows - excess.gather(1, last)).clamp_min(0).to(rows.dtype)
