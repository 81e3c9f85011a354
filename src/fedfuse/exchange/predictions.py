"""Predictions on public inputs instead of weights: a client's model never leaves it.

The server sends a prototype's weights at a client's first visit only; from then on the client goes on with its own.
Up travel the model's outputs for every public input, 4 n0 K bytes, and what the weighting needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.weights import NOTHING, Layout, Weights
from fedfuse.exchange.base import Answer, Exchange, Trained
from fedfuse.exchange.weighting import AnyWeighting, ByExamples
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.batches import slices
from fedfuse.runtime.evaluate import evaluation_mode
from fedfuse.runtime.source import PREDICTION_BATCH, Source

OUTPUTS, MODEL = "predictions", "exchange/model"


class Predictions(Exchange):
    """Clients send what their models say about the public inputs."""

    kind: Literal["predictions"] = "predictions"
    carries_weights: ClassVar[bool] = False
    sends_full_weights: ClassVar[bool] = False
    needs_source: ClassVar[bool] = True
    output: Literal["probabilities", "logits"] = "probabilities"
    weighting: AnyWeighting = Field(default_factory=ByExamples, description="how much each client's answers count")

    def begin(self, task: Task, state: Tensors, layout: Layout) -> Weights:
        return Weights(state[MODEL], layout) if MODEL in state else task.weights

    def sends_weights(self, visits: int) -> bool:
        return visits == 0

    def answer(self, trained: Trained) -> Answer:
        assert trained.source is not None, "checked before round 1"
        outputs = {OUTPUTS: self._predict(trained, trained.source)}
        extras = {**outputs, **self.weighting.testify(trained, trained.source)}
        return Answer(NOTHING, extras, {MODEL: trained.weights.flat})

    def reply(self, bank: ModelBank, prototype: str, source: Source | None) -> Mapping[str, tuple[int, ...]]:  # noqa: ARG002
        assert source is not None, "checked before round 1"
        shape = (len(source), bank.classes)
        return {OUTPUTS: shape, **self.weighting.reply(len(source), bank.classes)}

    def combine(self, updates: Sequence[Update]) -> Tensor:
        """zT = sum_k w_k z_k, summed in client order."""
        total = torch.zeros_like(updates[0].extras[OUTPUTS], dtype=torch.float64)
        for update, weight in zip(updates, self.weighting.weights(updates), strict=True):
            total += weight.double() * update.extras[OUTPUTS].double()
        return total.float()

    @torch.no_grad()
    def _predict(self, trained: Trained, source: Source) -> Tensor:
        indices = source.all_indices()
        with evaluation_mode(trained.model):
            outputs = [trained.model(source.inputs(indices[w])).cpu() for w in slices(len(source), PREDICTION_BATCH)]
        logits = torch.cat(outputs)
        return logits.softmax(dim=1) if self.output == "probabilities" else logits
