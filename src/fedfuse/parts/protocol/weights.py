"""Full weights both ways, as FedAvg: 4 (P + B) bytes each, unless links of ``upload`` make fewer of them."""

from __future__ import annotations

from typing import ClassVar, Literal

from fedfuse.core.messages import Task
from fedfuse.core.weights import Weights
from fedfuse.parts.context import ClientContext, ServerView
from fedfuse.parts.protocol.base import ClientResult, Expected, Protocol


class FullWeights(Protocol):
    """Clients receive the prototype's weights and send their own."""

    kind: Literal["weights"] = "weights"
    payload_of: ClassVar[Literal["examples", "model"]] = "model"
    sends_extras: ClassVar[bool] = False

    def answer(self, client: ClientContext, trained: Weights) -> ClientResult:
        return ClientResult(trained)

    def expects(self, view: ServerView, task: Task) -> Expected:
        return Expected(task.weights.layout)
