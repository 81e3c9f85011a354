"""Uploads of one bit per weight: packed bits, two numbers per filter, and norm layers in full.

P_b / 8 + 8 G + 4 (P - P_b + B) bytes up, for P_b binary weights in G groups; full weights down. Weights that have two
values per group already (``local: one_bit``) arrive exactly; others are quantised on the way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.weights import NOTHING, Layout, Weights
from fedfuse.parts.binary import BinaryPart, groups, norm_parameters, quantise
from fedfuse.parts.context import ServerView
from fedfuse.parts.protocol.base import Answer, Exchange, Shapes, Trained
from fedfuse.runtime.bank import ModelBank

BITS, VALUES, EXACT = "bits", "values", "exact"


class OneBitUpload(BinaryPart, Exchange):
    """Clients receive full weights and send one bit for each; other prototypes' clients send all bits."""

    kind: Literal["one_bit"] = "one_bit"
    sends_full_weights: ClassVar[bool] = False

    def answer(self, trained: Trained) -> Answer:
        return Answer(NOTHING, pack(trained.weights, self._exact(trained.bank, trained.task.prototype)))

    def update_spec(self, view: ServerView, task: Task) -> Shapes:
        layout, exact = view.weights[task.prototype].layout, self._exact(view.bank, task.prototype)
        binary = [shape for name, shape in layout.parameters if name not in exact]
        weights = sum(int(np.prod(shape)) for shape in binary)
        rows = sum(shape[0] if len(shape) == 4 else 1 for shape in binary)
        return {BITS: ((weights + 7) // 8,), VALUES: (rows, 2), EXACT: (layout.size - weights,)}

    def open(self, view: ServerView, update: Update) -> Update:
        exact = self._exact(view.bank, update.prototype)
        weights = unpack(update.extras, view.weights[update.prototype].layout, exact)
        rest = {name: tensor for name, tensor in update.extras.items() if name not in (BITS, VALUES, EXACT)}
        return replace(update, weights=weights, extras=rest)

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
