"""What travels between a client and the server: full weights, or something in their place."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Layout, Weights
from fedfuse.data import Examples, Transform
from fedfuse.models import Classifier
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.part import MethodPart
from fedfuse.runtime.source import Source


@dataclass(frozen=True)
class Trained:
    """A client after its training, with all that it can make an answer from."""

    task: Task
    model: Classifier
    weights: Weights
    examples: Examples
    transform: Transform
    bank: ModelBank
    source: Source | None
    state: Tensors
    key: Key


@dataclass(frozen=True)
class Answer:
    """What a client sends, and what it keeps for its next visit."""

    weights: Weights
    extras: Tensors = field(default_factory=dict)
    state: Tensors = field(default_factory=dict)


class Exchange(MethodPart):
    """The two ends of the wire."""

    carries_weights: ClassVar[bool] = True
    """Whether the server ends up with the clients' weights, which merging needs."""
    sends_full_weights: ClassVar[bool] = True
    """Whether they travel as they are, and not as something from which ``open`` makes them."""

    @abstractmethod
    def begin(self, task: Task, state: Tensors, layout: Layout) -> Weights:
        """The client: the weights it starts from."""

    @abstractmethod
    def answer(self, trained: Trained) -> Answer:
        """The client: what it sends and keeps."""

    def sends_weights(self, visits: int) -> bool:  # noqa: ARG002 - the default sends them always
        """The server: whether a client that took part ``visits`` times before is sent the prototype's weights."""
        return True

    def reply(self, bank: ModelBank, prototype: str, source: Source | None) -> Mapping[str, tuple[int, ...]]:  # noqa: ARG002
        """Names and shapes of the extras that every answer brings; anything else is refused."""
        return {}

    def open(self, update: Update, bank: ModelBank) -> Update:  # noqa: ARG002 - full weights need no opening
        """The server: the update with the client's weights in it, made from what travelled."""
        return update

    def combine(self, updates: Sequence[Update]) -> Tensor | None:  # noqa: ARG002 - weights are merged, not combined
        """The server: the clients' predictions on the source, put together, if that is what they sent."""
        return None
