"""Half precision: 2 bytes instead of 4 for every number on the way up."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.messages import Task, Tensors
from fedfuse.parts.base import Shapes
from fedfuse.parts.context import ClientContext
from fedfuse.parts.tensor_spec import TensorSpec
from fedfuse.parts.upload.base import Packed, Upload
from fedfuse.runtime.bank import ModelBank

_TYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}


class HalfPrecision(Upload):
    """Every number travels in 16 bits."""

    kind: Literal["half"] = "half"
    only_repacks: ClassVar[bool] = True
    type: Literal["float16", "bfloat16"] = Field(
        "float16", description="float16 is finer, bfloat16 has the range of 32 bits"
    )

    def pack(self, sent: Tensors, client: ClientContext) -> Packed:
        return Packed({name: self._half(tensor) for name, tensor in sent.items()})

    def spec(self, sent: Shapes, prototype: str, bank: ModelBank) -> Shapes:
        return {name: self._halved(TensorSpec.of(shape)) for name, shape in sent.items()}

    def unpack(self, came: Tensors, sent: Shapes, task: Task, bank: ModelBank) -> Tensors:
        return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in came.items()}

    def as_received(self, predictions: Tensor) -> Tensor:
        return self._half(predictions).float()

    def _halved(self, spec: TensorSpec) -> TensorSpec:
        return spec.retyped(_TYPES[self.type]) if spec.dtype.is_floating_point else spec

    def _half(self, tensor: Tensor) -> Tensor:
        return tensor.to(_TYPES[self.type]) if tensor.is_floating_point() else tensor
