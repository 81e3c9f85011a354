"""What a local objective is: the client's hooks, and what the server sends and learns for them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.weights import Weights
from fedfuse.parts.accumulator import Accumulator
from fedfuse.parts.base import MethodPart, Shapes
from fedfuse.parts.context import ClientContext, ServerView
from fedfuse.runtime.bank import ModelBank


@dataclass(frozen=True)
class Batch:
    """One mini-batch, normalised, augmented and on the device."""

    inputs: Tensor
    labels: Tensor


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
    """How a client trains, and the server's half of it.

    Label smoothing by a term that pulls all probabilities up, with no half on the server:

    >>> class Smoothing(fedfuse.Hooks):
    ...     def penalty(self, batch, features, logits):
    ...         return -0.1 * logits.log_softmax(dim=1).mean()
    >>> class Smooth(fedfuse.Objective):
    ...     def begin(self, client):
    ...         return Smoothing()
    """

    needs_weights: ClassVar[bool] = False
    """Whether it relies on the weights that server and clients exchange in every round."""
    remembers_weights: ClassVar[bool] = False
    """Whether what it keeps from round to round has the size of the model, or of its features."""

    stacks: ClassVar[bool] = False
    """Whether several clients' sessions may be under way at a time: their hooks use the model and the bank that they
    are shown, and nothing that all share, such as torch's default generator. Who replaces ``begin`` says it anew."""

    separates_examples: ClassVar[bool] = False
    """Whether its hooks look at examples in ``penalty`` alone, which is then a mean of terms that are about one example
    each and says nothing but that mean: what DP-SGD needs, which calls it for every example by itself. Who replaces
    ``begin`` says it anew."""

    adds_up: ClassVar[bool] = False
    """Whether ``after_round`` comes to the same if it is given one update with the sum of all extras, and the mean of
    all weights, in the place of many: then clients can be hidden in secure sums. Who replaces it says it anew."""

    @abstractmethod
    def begin(self, client: ClientContext) -> Hooks:
        """Start one client's session; the model already holds the task's weights."""

    def passes(self, task: Task) -> float:
        """Forward passes that each example of a step costs beside its training; the task has this part's extras."""
        return 0

    def broadcast(self, view: ServerView, chosen: Mapping[int, str]) -> Mapping[int, Tensors]:
        """Extras for this round's tasks, by client; ``chosen`` gives the sampled clients' prototypes."""
        return {}

    def update_spec(self, bank: ModelBank, prototype: str) -> Shapes:
        """Names and shapes of the extras that every update brings; anything else is refused."""
        return {}

    def fit(self, task: Task, update: Update) -> float | None:
        """How well what a client told this part fits where its weights went, 1 at best; both have this part's extras.

        Who fits far worse than the others is not believed (federation/moves.py). None: the weights say nothing of it.
        """
        return None

    def after_round(self, view: ServerView, updates: Sequence[Update], weights: Mapping[str, Weights]) -> Tensors:
        """What to remember of the round's counted updates and its resulting weights."""
        return view.memory

    def accumulator(self, view: ServerView) -> MemoryAccumulator:
        """The same one by one."""
        return MemoryAccumulator(view)


class MemoryAccumulator(Accumulator):
    """An objective's memory that takes the updates one by one; this one learns nothing of them."""

    def __init__(self, view: ServerView) -> None:
        self.view = view

    def add(self, update: Update) -> None:
        """Nothing of it is remembered."""

    def memory(self, weights: Mapping[str, Weights]) -> Tensors:
        """What to remember of all of them and of the round's resulting weights."""
        return self.view.memory
