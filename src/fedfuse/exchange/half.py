"""Uploads of half precision: 2 (P + B) bytes up, full weights down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

import torch

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.weights import NOTHING, Layout, Weights
from fedfuse.exchange.base import Answer, Exchange, Trained
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.source import Source

HALF = "half_precision"
_TYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}


class HalfPrecision(Exchange):
    """Clients receive full weights and send 16 bits for each."""

    kind: Literal["half"] = "half"
    sends_full_weights: ClassVar[bool] = False
    type: Literal["float16", "bfloat16"] = "float16"

    def begin(self, task: Task, state: Tensors, layout: Layout) -> Weights:  # noqa: ARG002
        return task.weights

    def answer(self, trained: Trained) -> Answer:
        return Answer(NOTHING, {HALF: trained.weights.flat.to(_TYPES[self.type])})

    def reply(self, bank: ModelBank, prototype: str, source: Source | None) -> Mapping[str, tuple[int, ...]]:  # noqa: ARG002
        return {HALF: (bank.layout(prototype).size,)}

    def open(self, update: Update, bank: ModelBank) -> Update:
        weights = Weights(update.extras[HALF].to(torch.float32), bank.layout(update.prototype))
        rest = {name: tensor for name, tensor in update.extras.items() if name != HALF}
        return replace(update, weights=weights, extras=rest)
