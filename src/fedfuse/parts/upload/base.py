"""Links between a client's answer and the wire: each changes what the one before it left, and the server undoes them.

    upload: [{kind: clip, norm: 1.0}, {kind: noise, multiplier: 1.0}, {kind: half}]

A payload is named tensors: ``weights``, a flat vector, or ``predictions``, a table. A link may change their values
(clip, noise), pack them (half, one bit, soft labels) or send a part of them (top-k, partial). What other parts send
beside it (label counts, control variates) is left alone by all but ``statistics``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.weights import Weights
from fedfuse.parts.base import MethodPart, Shapes
from fedfuse.parts.context import ClientContext, ServerView
from fedfuse.runtime.bank import ModelBank

SLOT = "upload"
"""The name of this slot in messages and states; a link's own is ``upload/<place>``."""


@dataclass(frozen=True)
class Packed:
    """What goes on to the next link, and what the client keeps for its next visit.

    ``aside`` travels as it is, for the same link on the server; ``bound`` says how long ``tensors`` can be at most.
    """

    tensors: Tensors
    state: Tensors = field(default_factory=dict)
    aside: Tensors = field(default_factory=dict)
    bound: float | None = None


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
    takes_predictions: ClassVar[bool] = False
    """Whether such a link works on a table of predictions as well."""
    needs_payload: ClassVar[bool] = True
    """Whether it works on the payload at all, and not on what travels beside it."""
    needs_probabilities: ClassVar[bool] = False
    """Whether it packs probabilities and nothing else."""
    remembers_weights: ClassVar[bool] = False
    """Whether a client keeps weights by it, which have to fit into the model that it is sent next."""
    only_repacks: ClassVar[bool] = False
    """Whether what it sends depends on nothing of the client but what the link before it left, now and at earlier
    visits. Behind noise, only such links leave a promise of privacy as it is."""

    @abstractmethod
    def pack(self, sent: Tensors, client: ClientContext) -> Packed:
        """The client: what becomes of the payload; ``client.task.weights`` is what it received."""

    def beside(self, extras: Tensors, sensitivity: float | None, client: ClientContext) -> Tensors:
        """The client: what becomes of what other parts send, which one example can move that far (None: who knows)."""
        return extras

    def spec(self, sent: Shapes, prototype: str, bank: ModelBank) -> Shapes:
        """Both: names and shapes of what ``pack`` makes of a payload of these."""
        return sent

    def aside_spec(self) -> Shapes:
        """Both: names and shapes of what it sends aside."""
        return {}

    def unpack(self, came: Tensors, sent: Shapes, task: Task, bank: ModelBank) -> Tensors:
        """The server: the payload of these shapes again, as near as it can come; a ValueError refuses the update."""
        return came

    def arrives(self, sent: Shapes) -> Shapes:
        """The server: what a payload of these shapes, types and ranges may be once it is unpacked."""
        return sent

    def broadcast(self, view: ServerView, chosen: Mapping[int, str]) -> Mapping[int, Tensors]:
        """The server: what this round's tasks carry for it, by client; ``chosen`` gives their prototypes."""
        return {}

    def after_round(self, view: ServerView, updates: Sequence[Update]) -> Tensors:
        """The server: what to remember of the round's updates, whose extras are what came aside."""
        return view.memory

    def begin(self, weights: Weights, state: Tensors) -> Weights:
        """The client: the weights that it starts from, of those that the server sent."""
        return weights

    def as_received(self, predictions: Tensor) -> Tensor:
        """What would arrive of a table of predictions."""
        return predictions
