"""Full weights both ways, as FedAvg: 4 (P + B) bytes each."""

from __future__ import annotations

from typing import Literal

from fedfuse.core.messages import Task, Tensors
from fedfuse.core.weights import Layout, Weights
from fedfuse.exchange.base import Answer, Exchange, Trained


class FullWeights(Exchange):
    """Clients receive the prototype's weights and send their own."""

    kind: Literal["weights"] = "weights"

    def begin(self, task: Task, state: Tensors, layout: Layout) -> Weights:  # noqa: ARG002
        return task.weights

    def answer(self, trained: Trained) -> Answer:
        return Answer(trained.weights)
