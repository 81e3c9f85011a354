"""What travels between a client and the server: full weights, or something in their place."""

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
from fedfuse.data import Examples, Transform
from fedfuse.models import Classifier
from fedfuse.parts.base import MethodPart
from fedfuse.parts.context import CombinedPredictions, ServerView
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.source import Source

Carries = Literal["weights", "layer", "predictions", "nothing"]

PREDICTIONS = "predictions"
"""The name under which a client's outputs travel."""

Shapes = Mapping[str, tuple[int, ...]]
"""Names and shapes of what an answer brings."""


@dataclass(frozen=True)
class Party:
    """A client at work, with all that it has: its model as it is now, its examples, the public inputs.

    ``test_inputs`` are there if the task asks to measure the client's own model on them; ``common`` is the key that all
    parties share, the server included.
    """

    task: Task
    model: Classifier
    examples: Examples
    transform: Transform
    bank: ModelBank
    source: Source | None
    test_inputs: Source | None
    state: Tensors
    key: Key
    common: Key


@dataclass(frozen=True)
class Trained(Party):
    """A client after its training; ``began`` are the weights with which it turned to its own examples."""

    began: Weights
    weights: Weights


@dataclass(frozen=True)
class Answer:
    """What a client sends, what it keeps for its next visit, and what it says of the test inputs beside its logits."""

    weights: Weights
    extras: Tensors = field(default_factory=dict)
    state: Tensors = field(default_factory=dict)
    test_outputs: Tensors = field(default_factory=dict)


class Exchange(MethodPart):
    """The two ends of the wire."""

    carries: ClassVar[Carries] = "weights"
    """What the server ends up with: clients' weights, one layer of them, or what they say about public inputs."""
    sends_full_weights: ClassVar[bool] = True
    """Whether weights travel as they are, and not as something from which ``open`` makes them."""
    brings_testimony: ClassVar[bool] = False
    """Whether clients say, beside weights, how much they should count as teachers."""
    pools_data: ClassVar[bool] = False
    """Whether one party holds everybody's examples, so that nothing has to travel at all."""

    def begin(self, task: Task, state: Tensors, bank: ModelBank) -> Weights:
        """The client: the weights it starts from."""
        return task.weights

    def distil_before(self, party: Party) -> bool:
        """The client: learn from what the server sent, before training on its own examples; whether there was any."""
        return False

    def extra_loss(self, party: Party) -> Callable[[], Tensor] | None:
        """The client: a further loss at every step of its training, if what the server sent has one."""
        return None

    def training(self, party: Party) -> AbstractContextManager[None]:
        """The client: surrounds its training, for instance to hold layers still."""
        return nullcontext()

    @property
    def needs_student(self) -> bool:
        """Whether clients learn from a model of the server."""
        return False

    @abstractmethod
    def answer(self, trained: Trained) -> Answer:
        """The client: what it sends and keeps."""

    def cohort(self, number: int, bank: ModelBank) -> int:
        """The server: the round in which those who take part in round ``number`` were drawn."""
        return number

    def invited(self, view: ServerView, chosen: Mapping[int, str]) -> Mapping[int, str]:
        """The server: who of the chosen clients (with their prototypes) has something to do in this round."""
        return chosen

    def sends_weights(self, view: ServerView, client: int) -> bool:
        """The server: whether a client is sent its prototype's weights."""
        return True

    def asks(self, view: ServerView, client: int) -> tuple[str, ...]:
        """The server: what a task asks for beside the usual answer, by names that ``answer`` knows."""
        return ()

    def public(self, source: Source, common: Key, number: int) -> Source:
        """Both: the public inputs that round ``number`` is about."""
        return source

    def broadcast(self, view: ServerView, chosen: Mapping[int, str]) -> Mapping[int, Tensors]:
        """The server: what this round's tasks carry beside weights, by client; ``chosen`` gives their prototypes."""
        return {}

    def weights_spec(self, view: ServerView, task: Task) -> Layout:
        """The server: the layout of the weights that the answer to this task must bring."""
        return task.weights.layout if self.sends_full_weights else NOTHING.layout

    def update_spec(self, view: ServerView, task: Task) -> Shapes:
        """The server: what the answer to this task must bring beside weights; anything else is refused."""
        return {}

    def test_outputs(self, inputs: int, classes: int) -> Shapes:
        """The server: what a client brings that was asked about the test inputs: its logits, and more."""
        return {PREDICTIONS: (inputs, classes)}

    def open(self, view: ServerView, update: Update) -> Update:
        """The server: the update with the client's weights or predictions in it, made from what travelled."""
        return update

    def combine(
        self, view: ServerView, updates: Sequence[Update], rows: Tensor | None = None
    ) -> CombinedPredictions | None:
        """The server: the clients' predictions on the round's public inputs, or on these rows of them, put together, if
        that is what they sent."""
        return None

    def combine_exams(self, updates: Sequence[Update]) -> CombinedPredictions | None:
        """The server: the same for the test inputs, where clients were asked about them."""
        return None

    def shares(self, view: ServerView, updates: Sequence[Update]) -> Sequence[Tensor]:
        """The server: how much each client counts as a teacher on the public inputs, if clients testified to it."""
        return ()

    def after_round(self, view: ServerView, updates: Sequence[Update]) -> Tensors:
        """The server: what to remember of the round's updates, counted or not, for the next round."""
        return view.memory
