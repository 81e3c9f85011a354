"""The base of links that change the numbers of an update, and neither their names nor their shapes.

An update is how far a client's parameters have moved from those that it received. Of predictions it is the table
itself: a client that says nothing would send zeros.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from fedfuse.core.messages import Tensors
from fedfuse.parts.base import Shapes
from fedfuse.parts.context import ClientContext
from fedfuse.parts.protocol.base import PREDICTIONS, WEIGHTS
from fedfuse.parts.tensor_spec import TensorSpec
from fedfuse.parts.upload.base import Packed, Upload
from fedfuse.runtime.bank import ModelBank

LEAST_FACTOR = 1e-30
"""Below this, float32 has fewer digits of a factor, and what it shortens could stay too long."""


def shortened(numbers: Tensor, factor: float) -> Tensor:
    """Numbers times a factor of at most 1, so that no rounding makes them longer than that."""
    if factor >= LEAST_FACTOR:
        return numbers * factor
    return (numbers.double() * factor).to(numbers.dtype)


class OnUpdates(Upload):
    """A link that looks at what a client adds to what the server has."""

    needs_whole_model: ClassVar[bool] = True
    takes_predictions: ClassVar[bool] = True

    @abstractmethod
    def changed(self, update: Tensor, client: ClientContext) -> Tensor:
        """What becomes of the update, a vector or a table; the very same one if nothing does."""

    def aside(self, update: Tensor, client: ClientContext) -> Tensors:
        """What is said of it to the same link on the server."""
        return {}

    def longest(self, client: ClientContext) -> float | None:
        """How long an update can be that this link leaves."""
        return None

    def pack(self, sent: Tensors, client: ClientContext) -> Packed:
        if PREDICTIONS in sent:
            update = sent[PREDICTIONS].float()
            tensors = {**sent, PREDICTIONS: self.changed(update, client)}
        else:
            received, flat = client.task.weights, sent[WEIGHTS]
            count = received.layout.parameter_count
            update = flat[:count] - received.parameters
            changed = self.changed(update, client)
            moved = flat.float() if changed is update else torch.cat([received.parameters + changed, flat[count:]])
            tensors = {**sent, WEIGHTS: moved}
        return Packed(tensors, aside=self.aside(update, client), bound=self.longest(client))

    def spec(self, sent: Shapes, prototype: str, bank: ModelBank) -> Shapes:
        name = PREDICTIONS if PREDICTIONS in sent else WEIGHTS
        return {**sent, name: TensorSpec.of(sent[name]).retyped(torch.float32)}
