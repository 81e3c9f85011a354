"""What is known of hidden units while a network is followed: which numbers belong together, and which stay in place.

Every place along an axis of a parameter has a mark, a whole number. Marks that are tied belong to one unit, which moves
as a whole. A unit that is tied to ``FIXED`` stays where it is: inputs and classes have an order of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

FIXED, ANYONE = 0, -1
"""The mark of what stays in place, and of a constant, which may stand for any unit."""


@dataclass
class Ties:
    """Marks in their order, and what was found out about them."""

    count: int = 1
    pairs: list[Tensor] = field(default_factory=list)
    blocks: list[Tensor] = field(default_factory=list)
    _blocks: int = 0

    def new(self, size: int) -> Tensor:
        """Marks that no other axis has."""
        self.count += size
        return torch.arange(self.count - size, self.count)

    def tie(self, ours: Tensor, theirs: Tensor) -> Tensor:
        """Two tensors of marks, place by place; what comes out is marked by either."""
        ours, theirs = torch.broadcast_tensors(ours, theirs)
        known = (ours != theirs) & (ours != ANYONE) & (theirs != ANYONE)
        self.pairs.append(torch.stack([ours[known], theirs[known]], dim=1))
        return torch.where(ours == ANYONE, theirs, ours)

    def hold(self, marks: Tensor) -> None:
        """They stay in place."""
        self.tie(marks, torch.tensor(FIXED))

    def confine(self, marks: Tensor, block: Tensor) -> None:
        """They may change places inside their block: what is done with a block does not see an order in it."""
        marks, block = (tensor.reshape(-1) for tensor in torch.broadcast_tensors(marks, block))
        self.blocks.append(torch.stack([marks, block + self._blocks], dim=1)[marks != ANYONE])
        self._blocks += int(block.max()) + 1 if len(block) else 0

    def units(self) -> NDArray[np.int64]:
        """The unit of each mark; that of ``FIXED`` is 0."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        pairs = torch.cat([torch.zeros(0, 2, dtype=torch.long), *self.pairs]).numpy()
        links = coo_array((np.ones(len(pairs), dtype=np.int8), (pairs[:, 0], pairs[:, 1])), shape=(self.count,) * 2)
        _, units = connected_components(links, directed=False)
        # Numbers in the order of the marks, whatever the library's are.
        _, first, inverse = np.unique(units, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[inverse].astype(np.int64)


def varying(marks: Tensor) -> frozenset[int]:
    """The axes along which marks differ; along the others they have one place."""
    return frozenset(axis for axis, size in enumerate(marks.shape) if size > 1)


def compact(marks: Tensor) -> Tensor:
    """Marks with one place along every axis along which they do not differ."""
    for axis, size in enumerate(marks.shape):
        first = marks.narrow(axis, 0, min(size, 1))
        if size > 1 and (marks.stride(axis) == 0 or bool((marks == first).all())):
            marks = first
    return marks
