"""The control variates of SCAFFOLD, option II (Karimireddy et al., 2020).

    y <- y - eta (g(y) - c_i + c)                    every local step; c_i is the client's, c the server's
    c_i+ = c_i - c + (x_{t-1} - y) / (K eta)         after K steps: the mean gradient that the client met
    c <- c + (1/N) sum_{i in S_t} (c_i+ - c_i)       N: all clients that run this prototype, sampled or not

Both start at zero, and only parameters have them: BatchNorm statistics are not descended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.sums import Sum
from fedfuse.core.weights import Weights, as_parameters
from fedfuse.parts.base import CheckContext, Shapes
from fedfuse.parts.context import ClientContext, ServerView
from fedfuse.parts.local.objective import Hooks, MemoryAccumulator, Objective
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.optimizers import Sgd


class ControlVariates(Objective):
    """Cross-entropy, its gradients corrected by how the client's usually differ from everybody's."""

    kind: Literal["control_variates"] = "control_variates"
    stacks: ClassVar[bool] = True
    separates_examples: ClassVar[bool] = True
    extras_of: ClassVar[Literal["examples", "model"]] = "model"
    needs_weights: ClassVar[bool] = True
    remembers_weights: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True

    def check(self, context: CheckContext) -> None:
        if not isinstance(context.optimizer, Sgd):
            raise ConfigError(
                "method.local control_variates reads a client's gradients off the distance it moved, "
                f"but training.optimizer {context.optimizer.kind} rescales its steps; use sgd"
            )

    def begin(self, client: ClientContext) -> Hooks:
        return _ControlHooks(client)

    def broadcast(self, view: ServerView, chosen: Mapping[int, str]) -> Mapping[int, Tensors]:
        controls = {prototype: _control(view, prototype) for prototype in set(chosen.values())}
        return {client: {"control": controls[prototype]} for client, prototype in chosen.items()}

    def update_spec(self, bank: ModelBank, prototype: str) -> Shapes:
        return {"control_change": (bank.layout(prototype).parameter_count,)}

    def fit(self, task: Task, update: Update) -> float | None:
        """c_i+ - c_i + c is as x_{t-1} - y, but for how long it is."""
        gradients = update.extras["control_change"] + task.extras["control"]
        moved = task.weights.parameters - update.weights.parameters
        return float(F.cosine_similarity(gradients, moved, dim=0)) if gradients.any() or moved.any() else None

    def after_round(self, view: ServerView, updates: Sequence[Update], weights: Mapping[str, Weights]) -> Tensors:
        changes = self.accumulator(view)
        for update in updates:
            changes.add(update)
        return changes.memory(weights)

    def accumulator(self, view: ServerView) -> MemoryAccumulator:
        return _Changes(view)


class _Changes(MemoryAccumulator):
    """c + (1/N) sum (c_i+ - c_i), in double precision as the average of weights."""

    def __init__(self, view: ServerView) -> None:
        super().__init__(view)
        self.sums: dict[str, Sum] = {}

    def add(self, update: Update) -> None:
        change = update.extras["control_change"]
        if update.prototype not in self.sums:
            self.sums[update.prototype] = Sum(len(change))
        self.sums[update.prototype].add(change)

    def memory(self, weights: Mapping[str, Weights]) -> Tensors:
        return {
            **self.view.memory,
            **{prototype: self._moved(prototype, sum_) for prototype, sum_ in self.sums.items()},
        }

    def _moved(self, prototype: str, changes: Sum) -> Tensor:
        control = _control(self.view, prototype)
        changes.total.div_(self.view.clients_of[prototype])
        changes.add(control)
        return changes.total.to(control.dtype)


def _control(view: ServerView, prototype: str) -> Tensor:
    """c: each prototype has its own, because gradients of different networks do not add up."""
    return view.memory[prototype] if prototype in view.memory else torch.zeros_like(view.weights[prototype].parameters)


class _ControlHooks(Hooks):
    def __init__(self, client: ClientContext) -> None:
        optimizer = client.training.optimizer
        assert isinstance(optimizer, Sgd), "checked before round 1"
        self.client = client
        self.momentum = optimizer.momentum
        self.server = client.received["control"]
        self.own = client.state["control"] if "control" in client.state else torch.zeros_like(self.server)
        self.parameters = list(client.model.parameters())
        self.corrections = as_parameters(self.server - self.own, self.parameters)
        self.last_pace = self.pace = 0.0
        self.rates = client.training.rates(1.0, client.training.steps(len(client.examples)))

    @torch.no_grad()
    def on_gradient(self) -> None:
        for parameter, correction in zip(self.parameters, self.corrections, strict=True):
            if parameter.grad is not None:  # one that the loss never reaches does not move, so its correction is zero
                parameter.grad.add_(correction)

    def on_step_end(self) -> None:
        """Sum up K. With momentum a gradient goes on moving the weights, so K is the sum of all the paces."""
        self.last_pace = self.momentum * self.last_pace + 1
        self.pace += next(self.rates) * self.last_pace

    @cached_property
    def change(self) -> Tensor:
        """c_i+ - c_i, written so that client and server add the very same numbers."""
        start, self.corrections = self.client.start, []  # in place, as a model may be large: nobody else sees it yet
        change = Weights.of(self.client.model, start.layout).parameters
        torch.sub(start.parameters, change, out=change)
        return change.div_(self.pace * self.client.learning_rate).sub_(self.server)

    def extras(self) -> Tensors:
        return {"control_change": self.change}

    def state(self) -> Tensors:
        return {"control": self.own + self.change}
