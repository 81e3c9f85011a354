"""Uploads of half precision: 2 (P + B) bytes up, full weights down."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

import torch

from fedfuse.core.messages import Task, Update
from fedfuse.core.weights import NOTHING, Weights
from fedfuse.parts.context import ServerView
from fedfuse.parts.protocol.base import Answer, Exchange, Shapes, Trained

HALF = "half_precision"
_TYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}


class HalfPrecision(Exchange):
    """Clients receive full weights and send 16 bits for each."""

    kind: Literal["half"] = "half"
    sends_full_weights: ClassVar[bool] = False
    type: Literal["float16", "bfloat16"] = "float16"

    def answer(self, trained: Trained) -> Answer:
        return Answer(NOTHING, {HALF: trained.weights.flat.to(_TYPES[self.type])})

    def update_spec(self, view: ServerView, task: Task) -> Shapes:
        return {HALF: (view.weights[task.prototype].layout.size,)}

    def open(self, view: ServerView, update: Update) -> Update:
        weights = Weights(update.extras[HALF].to(torch.float32), view.weights[update.prototype].layout)
        rest = {name: tensor for name, tensor in update.extras.items() if name != HALF}
        return replace(update, weights=weights, extras=rest)
