"""What a fusion is: predictions of many models into the weights of one student per prototype."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from torch import Tensor

from fedfuse.core.messages import Tensors, Update
from fedfuse.core.weights import Weights
from fedfuse.parts.base import MethodPart
from fedfuse.parts.context import ServerView

Reads = Literal["weights", "predictions", "nothing"]


@dataclass(frozen=True)
class Fused:
    """The students' weights, what there is to say about each, and the memory of the next round.

    ``ensemble`` says which ensemble taught them, where the fusion chose one.
    """

    weights: Mapping[str, Weights]
    report: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    memory: Tensors = field(default_factory=dict)
    ensemble: str = ""


@dataclass(frozen=True)
class FusionWork:
    """A round's fusion in numbers: the public inputs, whether each step has new ones, and by prototype the clients that
    teach and the steps that students take."""

    inputs: int
    is_fresh: bool
    clients: Mapping[str, float]
    steps: Mapping[str, float]


class Fuse(MethodPart):
    """Server-side knowledge distillation: predictions to weights."""

    needs_source: ClassVar[bool] = True
    reads: ClassVar[Reads] = "weights"
    """What it needs of the clients."""
    makes_students: ClassVar[bool] = True
    """Whether it trains models, so that there is a before and an after."""

    @property
    def shows_new_inputs(self) -> bool:
        """Whether teachers are asked about other inputs than the public ones as they are."""
        return False

    @property
    def compares_widths(self) -> bool:
        """Whether it subtracts what the server had from what clients sent, which then must be of the same widths."""
        return False

    def trains_without_clients(self, prototype: str) -> bool:
        """Whether a model that no client runs learns from those that others run."""
        return False

    def passes(self, work: FusionWork) -> Mapping[str, float]:
        """Forward passes that it makes through each prototype's network, a training step counted as three."""
        return {}

    @abstractmethod
    def fuse(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> Fused:
        """Students, taught by all teachers of all prototypes; ``merged`` has the prototypes that clients ran."""

    @abstractmethod
    def ensemble(
        self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]
    ) -> Callable[[Tensor], Tensor] | None:
        """The ensemble that the students imitate, as a function from inputs to logits; None if there is none."""
