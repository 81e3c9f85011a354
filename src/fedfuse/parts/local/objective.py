"""What a local objective is: the client's hooks, and what the server sends and learns for them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.data import Examples
from fedfuse.models import Classifier
from fedfuse.parts.base import MethodPart
from fedfuse.parts.context import ServerView
from fedfuse.parts.local.settings import TrainingSettings
from fedfuse.runtime.bank import ModelBank


@dataclass(frozen=True)
class Batch:
    """One mini-batch, normalised, augmented and on the device."""

    inputs: Tensor
    labels: Tensor


@dataclass(frozen=True)
class Visit:
    """Everything one client has while it works on one task.

    ``state`` is what this client's hooks returned the last time it took part (empty before). ``bank`` lends further
    networks under other roles than "student", which is ``model``.
    """

    task: Task
    model: Classifier
    examples: Examples
    training: TrainingSettings
    learning_rate: float
    state: Tensors
    bank: ModelBank
    key: Key


class Hooks:
    """One client's session of one task. Hooks are named by the moment they run; all do nothing by default."""

    def penalty(self, batch: Batch, features: Tensor, logits: Tensor) -> Tensor | None:
        """A term added to the cross-entropy of this batch; ``batch`` also lets a hook ask other models."""

    def on_gradient(self) -> None:
        """Gradients are computed, the optimiser has not stepped (corrections go before momentum)."""

    def on_step_end(self) -> None:
        """The optimiser has stepped."""

    def extras(self) -> Tensors:
        """What travels to the server beside the weights."""
        return {}

    def state(self) -> Tensors:
        """What stays with this client until its next task."""
        return {}


class Objective(MethodPart):
    """How a client trains, and the server's half of it."""

    needs_weights: ClassVar[bool] = False
    """Whether it relies on the weights that server and clients exchange in every round."""
    remembers_weights: ClassVar[bool] = False
    """Whether what it keeps from round to round has the size of the model, or of its features."""

    @abstractmethod
    def begin(self, visit: Visit) -> Hooks:
        """Start one client's session; the model already holds the task's weights."""

    def broadcast(self, view: ServerView, chosen: Mapping[int, str]) -> Mapping[int, Tensors]:
        """Extras for this round's tasks, by client; ``chosen`` gives the sampled clients' prototypes."""
        return {}

    def update_spec(self, bank: ModelBank, prototype: str) -> Mapping[str, tuple[int, ...]]:
        """Names and shapes of the extras that every update brings; anything else is refused."""
        return {}

    def after_round(self, view: ServerView, updates: Sequence[Update], weights: Mapping[str, Weights]) -> Tensors:
        """Digest the round's counted updates and its resulting weights into the memory of the next round."""
        return view.memory
