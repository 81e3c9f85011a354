"""Exchanges in which a client's model never leaves it.

The server sends a prototype's weights at a client's first visit only; from then on the client goes on with its own.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from fedfuse.core.messages import Task, Tensors
from fedfuse.core.weights import NOTHING, Weights
from fedfuse.parts.context import ServerView
from fedfuse.parts.protocol.base import Answer, Carries, Exchange, Trained
from fedfuse.runtime.bank import ModelBank

MODEL = "exchange/model"
"""Where a client's state has its model."""


class KeptModel(Exchange):
    """The base of exchanges without weights."""

    carries: ClassVar[Carries] = "nothing"
    sends_full_weights: ClassVar[bool] = False

    def begin(self, task: Task, state: Tensors, bank: ModelBank) -> Weights:
        return Weights(state[MODEL], bank.layout(task.prototype)) if MODEL in state else task.weights

    def sends_weights(self, view: ServerView, client: int) -> bool:
        return not view.visits[client]


class NoExchange(KeptModel):
    """Nothing travels but what the local objective sends; with the plain one, clients learn alone."""

    kind: Literal["nothing"] = "nothing"

    def answer(self, trained: Trained) -> Answer:
        return Answer(NOTHING, state={MODEL: trained.weights.flat})
