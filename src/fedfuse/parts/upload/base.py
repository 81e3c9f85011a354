"""Links between a client's answer and the wire: each changes what the one before it left, and the server undoes them.

    upload: [{kind: clip, norm: 1.0}, {kind: noise, deviation: 0.01}, {kind: half}]

A payload is named tensors: ``weights``, a flat vector, or ``predictions``, a table. A link may change their values
(clip, noise), pack them (half, one bit, soft labels) or send a part of them (top-k, partial).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from fedfuse.core.messages import Task, Tensors
from fedfuse.core.weights import Weights
from fedfuse.parts.base import MethodPart, Shapes
from fedfuse.parts.context import ClientContext
from fedfuse.runtime.bank import ModelBank

SLOT = "upload"
"""The name of this slot in messages and states."""


@dataclass(frozen=True)
class Packed:
    """What goes on to the next link, and what the client keeps for its next visit."""

    tensors: Tensors
    state: Tensors = field(default_factory=dict)


class Upload(MethodPart):
    """One link: compression, clipping or noise of what a client sends.

    Every number rounded to a grid, so that an entropy coder would have little left to do:

    >>> from fedfuse.parts.upload import Packed, Upload
    >>> class Grid(Upload):
    ...     step: float = 0.01
    ...
    ...     def pack(self, sent, client):
    ...         return Packed({name: (tensor / self.step).round() * self.step for name, tensor in sent.items()})
    >>> Grid(step=0.5).pack({"weights": torch.tensor([0.2, 0.6])}, client=None).tensors
    {'weights': tensor([0.0000, 0.5000])}
    """

    kind: str
    needs_whole_model: ClassVar[bool] = False
    """Whether it works on all weights of a model of the architecture's own widths."""
    needs_probabilities: ClassVar[bool] = False
    """Whether it packs probabilities and nothing else."""
    remembers_weights: ClassVar[bool] = False
    """Whether a client keeps weights by it, which have to fit into the model that it is sent next."""

    @abstractmethod
    def pack(self, sent: Tensors, client: ClientContext) -> Packed:
        """The client: what becomes of the payload; ``client.task.weights`` is what it received."""

    def spec(self, sent: Shapes, prototype: str, bank: ModelBank) -> Shapes:
        """Both: names and shapes of what ``pack`` makes of a payload of these."""
        return sent

    def unpack(self, came: Tensors, sent: Shapes, task: Task, bank: ModelBank) -> Tensors:
        """The server: the payload of these shapes again, as near as it can come; a ValueError refuses the update."""
        return came

    def begin(self, weights: Weights, state: Tensors) -> Weights:
        """The client: the weights that it starts from, of those that the server sent."""
        return weights

    def as_received(self, predictions: Tensor) -> Tensor:
        """What would arrive of a table of predictions."""
        return predictions
