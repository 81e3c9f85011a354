"""One bit per weight: packed bits, two numbers per filter, and norm layers in full.

P_b / 8 + 8 G + 4 (P - P_b + B) bytes up, for P_b binary weights in G groups; full weights down. Weights that have two
values per group already (``local: one_bit``) arrive exactly; others are quantised on the way.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from fedfuse.core.messages import Task, Tensors
from fedfuse.core.weights import Layout, Weights
from fedfuse.parts.base import Shapes
from fedfuse.parts.binary import BinaryPart, groups, norm_parameters, quantise
from fedfuse.parts.context import ClientContext
from fedfuse.parts.protocol.base import WEIGHTS
from fedfuse.parts.tensor_spec import TensorSpec
from fedfuse.parts.upload.base import Packed, Upload
from fedfuse.runtime.bank import ModelBank

BITS, VALUES, EXACT = "bits", "values", "exact"


class OneBitUpload(BinaryPart, Upload):
    """Clients send one bit for each weight; other prototypes' clients send all bits."""

    kind: Literal["one_bit"] = "one_bit"
    only_repacks: ClassVar[bool] = True
    needs_whole_model: ClassVar[bool] = True

    def pack(self, sent: Tensors, client: ClientContext) -> Packed:
        prototype, bank = client.task.prototype, client.bank
        weights = Weights(sent[WEIGHTS], bank.layout(prototype))
        return Packed(pack(weights, self._exact(bank, prototype)))

    def spec(self, sent: Shapes, prototype: str, bank: ModelBank) -> Shapes:
        (size,), exact = sent[WEIGHTS], self._exact(bank, prototype)
        binary = [shape for name, shape in bank.layout(prototype).parameters if name not in exact]
        weights = sum(int(np.prod(shape)) for shape in binary)
        rows = sum(shape[0] if len(shape) == 4 else 1 for shape in binary)
        return {BITS: TensorSpec(((weights + 7) // 8,), torch.uint8), VALUES: (rows, 2), EXACT: (size - weights,)}

    def unpack(self, came: Tensors, sent: Shapes, task: Task, bank: ModelBank) -> Tensors:
        layout = bank.layout(task.prototype)
        return {WEIGHTS: unpack(came, layout, self._exact(bank, task.prototype)).flat}

    def _exact(self, bank: ModelBank, prototype: str) -> frozenset[str]:
        """Names of the parameters that travel as they are."""
        if self.binarises(prototype):
            return norm_parameters(bank.network(prototype))
        return frozenset(name for name, _ in bank.layout(prototype).parameters)


def pack(weights: Weights, exact: frozenset[str]) -> dict[str, Tensor]:
    """Bits in the layout's order, (low, high) per group, and everything that stays exact."""
    bits, values, rest = [torch.empty(0, dtype=torch.bool)], [torch.empty(0, 2)], [torch.empty(0)]
    names = {name for name, _ in weights.layout.parameters} - exact
    for name in weights:
        if name in names:
            rows = groups(weights[name])
            if not _has_two_values(rows):
                rows = groups(quantise(weights[name]))
            low, high = rows.amin(dim=1), rows.amax(dim=1)
            bits.append((rows == high.unsqueeze(1)).reshape(-1))
            values.append(torch.stack([low, high], dim=1))
        else:
            rest.append(weights[name].reshape(-1))
    packed = np.packbits(torch.cat(bits).numpy())
    return {BITS: torch.from_numpy(packed), VALUES: torch.cat(values), EXACT: torch.cat(rest)}


def unpack(packed: Tensors, layout: Layout, exact: frozenset[str]) -> Weights:
    """The weights that were packed."""
    names = {name for name, _ in layout.parameters} - exact
    bits = torch.from_numpy(np.unpackbits(packed[BITS].numpy())).bool()
    values, rest = packed[VALUES], packed[EXACT]
    flat, bit, row, number = [], 0, 0, 0
    for entry in layout.entries:
        if entry.name in names:
            count = entry.shape[0] if len(entry.shape) == 4 else 1
            high = bits[bit : bit + entry.size].reshape(count, -1)
            two = values[row : row + count]
            flat.append(torch.where(high, two[:, 1:], two[:, :1]).reshape(-1))
            bit, row = bit + entry.size, row + count
        else:
            flat.append(rest[number : number + entry.size])
            number += entry.size
    return Weights(torch.cat(flat), layout)


def _has_two_values(rows: Tensor) -> bool:
    low, high = rows.amin(dim=1, keepdim=True), rows.amax(dim=1, keepdim=True)
    return bool(((rows == low) | (rows == high)).all())
