"""The base of links that change the numbers of an update, and neither their names nor their shapes."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from fedfuse.core.messages import Tensors
from fedfuse.parts.base import Shapes
from fedfuse.parts.context import ClientContext
from fedfuse.parts.protocol.base import WEIGHTS
from fedfuse.parts.tensor_spec import TensorSpec
from fedfuse.parts.upload.base import Packed, Upload
from fedfuse.runtime.bank import ModelBank


class OnUpdates(Upload):
    """A link that looks at the difference between the weights that a client received and those that it sends."""

    needs_whole_model: ClassVar[bool] = True

    @abstractmethod
    def changed(self, update: Tensor, client: ClientContext) -> Tensor:
        """What becomes of the parameters' update, a flat vector; the very same one if nothing does."""

    def pack(self, sent: Tensors, client: ClientContext) -> Packed:
        received, flat = client.task.weights, sent[WEIGHTS]
        count = received.layout.parameter_count
        update = flat[:count] - received.parameters
        changed = self.changed(update, client)
        if changed is update:
            return Packed({**sent, WEIGHTS: flat.float()})
        return Packed({**sent, WEIGHTS: torch.cat([received.parameters + changed, flat[count:]])})

    def spec(self, sent: Shapes, prototype: str, bank: ModelBank) -> Shapes:
        return {**sent, WEIGHTS: TensorSpec.of(sent[WEIGHTS]).retyped(torch.float32)}
