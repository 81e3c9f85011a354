"""Protocols in which a client's model never leaves it.

The server sends a prototype's weights at a client's first visit only; from then on the client goes on with its own.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from fedfuse.core.messages import Task, Tensors
from fedfuse.core.weights import Weights
from fedfuse.parts.context import ClientContext, ServerView
from fedfuse.parts.protocol.base import SLOT, Carries, ClientResult, Expected, Protocol
from fedfuse.runtime.bank import ModelBank

MODEL = "model"
"""Where a client's state has its model."""
KEPT_MODEL = f"{SLOT}/{MODEL}"
"""The same among the states of all parts."""


class KeptModel(Protocol):
    """The base of protocols without weights."""

    carries: ClassVar[Carries] = "nothing"

    def begin(self, task: Task, state: Tensors, bank: ModelBank) -> Weights:
        return Weights(state[MODEL], bank.layout(task.prototype)) if MODEL in state else task.weights

    def sends_weights(self, view: ServerView, client: int) -> bool:
        return not view.visits[client]


class NoExchange(KeptModel):
    """Nothing travels but what the local objective sends; with the plain one, clients learn alone."""

    kind: Literal["nothing"] = "nothing"
    payload_of: ClassVar[Literal["examples", "model"]] = "model"
    sends_extras: ClassVar[bool] = False

    def answer(self, client: ClientContext, trained: Weights) -> ClientResult:
        return ClientResult(state={MODEL: trained.flat})

    def expects(self, view: ServerView, task: Task) -> Expected:
        return Expected()
