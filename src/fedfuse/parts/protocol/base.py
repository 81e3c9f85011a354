"""What travels between a client and the server: the communication protocol of a method."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from torch import Tensor

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.randomness import Key
from fedfuse.core.weights import NOTHING, Layout, Weights
from fedfuse.parts.base import MethodPart, Shapes
from fedfuse.parts.context import ClientContext, CombinedPredictions, ServerView
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.source import Source

Carries = Literal["weights", "layer", "predictions", "nothing"]

SLOT = "protocol"
"""The name of this slot in messages, states and memories."""
WEIGHTS, PREDICTIONS = "weights", "predictions"
"""What a client's payload may be: a flat vector of weights, or outputs for public inputs."""

ExtraLoss = Callable[[], Tensor]
"""A further loss at every step of a client's training."""
Draw = Callable[[int], Mapping[int, str]]
"""Who was drawn for a round, with their prototypes."""


@dataclass(frozen=True)
class ClientResult:
    """What a client sends and keeps: its payload, which is weights or predictions, extras, and its state.

    The links of ``upload`` pack the payload; extras travel as they are.
    """

    weights: Weights = field(default_factory=lambda: NOTHING)
    predictions: Tensor | None = None
    extras: Tensors = field(default_factory=dict)
    state: Tensors = field(default_factory=dict)
    bound: float | None = None
    """How long, in Euclidean norm, the payload can be at most, where that is known."""

    @property
    def payload(self) -> Tensors:
        if self.weights:
            return {WEIGHTS: self.weights.flat}
        return {} if self.predictions is None else {PREDICTIONS: self.predictions}


@dataclass(frozen=True)
class Expected:
    """What the answer to a task must bring, before links pack it; anything else is refused."""

    layout: Layout = NOTHING.layout
    predictions: tuple[int, ...] | None = None
    extras: Shapes = field(default_factory=dict)

    @property
    def payload(self) -> Shapes:
        if self.layout.size:
            return {WEIGHTS: (self.layout.size,)}
        return {} if self.predictions is None else {PREDICTIONS: self.predictions}


class Protocol(MethodPart):
    """The communication protocol: the two ends of the wire.

    A client: ``begin``, ``distil_before``, ``training``, ``answer``. The server: the other methods.
    """

    kind: str
    carries: ClassVar[Carries] = "weights"
    """What the server ends up with: clients' weights, one layer of them, or what they say about public inputs."""
    sends_extras: ClassVar[bool] = True
    """Whether ``answer`` gives extras beside the payload. Who replaces ``answer`` says it anew."""
    payload_of: ClassVar[Literal["examples", "model"]] = "examples"
    """What ``answer`` makes the payload of: a client's examples, or nothing but the model that it trained and public
    inputs, so that it is as private as that model. Who replaces ``answer`` says it anew."""

    @property
    def needs_student(self) -> bool:
        """Whether clients learn from a model of the server."""
        return False

    @property
    def sends_probabilities(self) -> bool:
        """Whether a client's payload is probabilities."""
        return False

    def longest(self, inputs: int) -> float | None:
        """How long, in Euclidean norm, a payload about so many public inputs can be; None: as long as it likes."""
        return None

    @property
    def trains_freely(self) -> bool:
        """Whether ``training`` leaves a client's training alone, so that several may be trained at a time."""
        return type(self).training is Protocol.training

    def begin(self, task: Task, state: Tensors, bank: ModelBank) -> Weights:
        """The weights that a client starts from."""
        return task.weights

    def distil_before(self, client: ClientContext) -> bool:
        """Learn from what the server sent, before training on own examples; whether there was anything."""
        return False

    def training(self, client: ClientContext) -> AbstractContextManager[ExtraLoss | None]:
        """Surrounds a client's training, for instance to hold layers still; it may give a further loss."""
        return nullcontext()

    @abstractmethod
    def answer(self, client: ClientContext, trained: Weights) -> ClientResult:
        """What a client sends and keeps after its training."""

    def passes(self, task: Task, inputs: int, steps: float) -> float:
        """Forward passes over public inputs that a client's so many steps cost beside its own examples.

        The task has this part's extras.
        """
        return 0

    def participants(self, view: ServerView, drawn: Draw) -> Mapping[int, str]:
        """Who has something to do in this round, with their prototypes."""
        return drawn(view.round)

    def sends_weights(self, view: ServerView, client: int) -> bool:
        """Whether a client is sent its prototype's weights."""
        return True

    def broadcast(self, view: ServerView, chosen: Mapping[int, str]) -> Mapping[int, Tensors]:
        """What this round's tasks carry beside weights, by client; ``chosen`` gives their prototypes."""
        return {}

    @abstractmethod
    def expects(self, view: ServerView, task: Task) -> Expected:
        """What the answer to this task must bring."""

    def rows(self, inputs: int, common: Key, number: int) -> Tensor | None:
        """Which of so many public inputs round ``number`` is about, the same for all parties; None: all of them."""
        return None

    def public(self, source: Source, common: Key, number: int) -> Source:
        """Those inputs."""
        rows = self.rows(len(source), common, number)
        return source if rows is None else source.part(rows)

    def combine(self, outputs: Sequence[Tensor], coefficients: Sequence[Tensor]) -> CombinedPredictions:
        """Clients' predictions put together, if that is what they send."""
        raise NotImplementedError

    def as_sent(self, logits: Tensor) -> Tensor:
        """What a client with these logits sends, if that is predictions."""
        return logits

    def after_round(
        self, view: ServerView, updates: Sequence[Update], predictions: CombinedPredictions | None
    ) -> Tensors:
        """What to remember of the round's counted updates, and of what teachers said together."""
        return view.memory
