"""Probabilities in few bits on the way up, as CFD (Sattler et al., 2021); the code is written out in parts/bits.py."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.messages import Task, Tensors
from fedfuse.parts.base import Shapes
from fedfuse.parts.bits import pack, packed_size, unpack
from fedfuse.parts.context import ClientContext
from fedfuse.parts.protocol.base import PREDICTIONS
from fedfuse.parts.tensor_spec import TensorSpec
from fedfuse.parts.upload.base import Packed, Upload
from fedfuse.runtime.bank import ModelBank

CODES = "codes"


class SoftLabels(Upload):
    """Every probability travels in a few bits; with one bit only the most probable class does."""

    kind: Literal["soft_labels"] = "soft_labels"
    only_repacks: ClassVar[bool] = True
    needs_probabilities: ClassVar[bool] = True
    bits: int = Field(1, ge=1, le=8, description="bits of each probability; 1: only the most probable class (CFD)")

    def pack(self, sent: Tensors, client: ClientContext) -> Packed:
        return Packed({CODES: pack(sent[PREDICTIONS], self.bits)})

    def spec(self, sent: Shapes, prototype: str, bank: ModelBank) -> Shapes:
        rows, classes = sent[PREDICTIONS]
        return {CODES: TensorSpec((packed_size(self.bits, rows, classes),), torch.uint8)}

    def unpack(self, came: Tensors, sent: Shapes, task: Task, bank: ModelBank) -> Tensors:
        rows, classes = sent[PREDICTIONS]
        return {PREDICTIONS: unpack(came[CODES], self.bits, rows, classes)}

    def as_received(self, predictions: Tensor) -> Tensor:
        return unpack(pack(predictions, self.bits), self.bits, *predictions.shape)
