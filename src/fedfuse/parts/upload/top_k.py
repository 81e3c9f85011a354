"""The largest changes only (Aji and Heafield, Sparse Communication for Distributed Gradient Descent, EMNLP 2017).

    u = y - x + e;   send the k entries of u with the largest |u_i| and where they are;   e <- what was not sent of u

x: the weights that the client received, y: those it trained; the error memory e stays with the client, and starts at
zero. 8 k bytes up instead of 4 P, and BatchNorm statistics in full.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field

from fedfuse.core.messages import Task, Tensors
from fedfuse.parts.base import Shapes
from fedfuse.parts.context import ClientContext
from fedfuse.parts.protocol.base import WEIGHTS
from fedfuse.parts.tensor_spec import TensorSpec
from fedfuse.parts.upload.base import Packed, Upload
from fedfuse.runtime.bank import ModelBank

VALUES, PLACES, STATISTICS, ERROR = "values", "places", "statistics", "error"


class TopK(Upload):
    """Clients send the largest changes of their weights, and keep the others for later."""

    kind: Literal["top_k"] = "top_k"
    only_repacks: ClassVar[bool] = True
    needs_whole_model: ClassVar[bool] = True
    remembers_weights: ClassVar[bool] = True
    share: float = Field(0.1, gt=0, le=1, description="part of the parameters whose change travels")
    error_feedback: bool = Field(True, description="whether changes that were not sent are added to the next ones")

    def pack(self, sent: Tensors, client: ClientContext) -> Packed:
        received, flat = client.task.weights, sent[WEIGHTS]
        count = received.layout.parameter_count
        update = flat[:count] - received.parameters
        if ERROR in client.state:
            update = update + client.state[ERROR]
        places = update.abs().argsort(descending=True, stable=True)[: self._number(count)].sort().values
        left = update.index_fill(0, places, 0.0)
        packed = {VALUES: update[places], PLACES: places.int(), STATISTICS: flat[count:]}
        return Packed(packed, {ERROR: left} if self.error_feedback else {})

    def spec(self, sent: Shapes, prototype: str, bank: ModelBank) -> Shapes:
        whole, count = TensorSpec.of(sent[WEIGHTS]), bank.layout(prototype).parameter_count
        number = self._number(count)
        places = TensorSpec((number,), torch.int32, least=0, most=count - 1)
        return {VALUES: (number,), PLACES: places, STATISTICS: whole.resized((whole[0] - count,))}

    def unpack(self, came: Tensors, sent: Shapes, task: Task, bank: ModelBank) -> Tensors:
        places, parameters = came[PLACES], task.weights.parameters
        changed = parameters.index_add(0, places.long(), came[VALUES].float())
        return {WEIGHTS: torch.cat([changed, came[STATISTICS].float()])}

    def _number(self, parameters: int) -> int:
        return max(1, round(self.share * parameters))
