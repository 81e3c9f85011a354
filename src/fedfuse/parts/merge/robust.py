"""The base of merges that a minority of hostile clients cannot move far.

They look at the clients of one prototype. BatchNorm statistics are merged number by number with the median, unless the
merge says otherwise: so they stay inside what honest clients have, and a variance stays positive.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from fedfuse.core.messages import Tensors, Update
from fedfuse.core.weights import Weights
from fedfuse.parts.context import ServerView
from fedfuse.parts.merge.base import Merge, Merged
from fedfuse.parts.robust import rows


class RobustMerge(Merge):
    """Merges of whole models of fixed widths."""

    @abstractmethod
    def parameters(self, view: ServerView, prototype: str, updates: Sequence[Update]) -> tuple[Tensor, Tensors]:
        """The merged parameters, and what to remember."""

    def merge(self, view: ServerView, prototype: str, updates: Sequence[Update]) -> Merged:
        merged, memory = self.parameters(view, prototype, updates)
        weights = [update.weights for update in updates]
        layout = weights[0].layout
        buffers = [medians(piece) for piece in rows(weights, layout.size, layout.parameter_count)]
        flat = torch.cat([merged.float(), *(piece.float() for piece in buffers)])
        return Merged(Weights(flat, layout), memory)


class CoordinateMerge(RobustMerge):
    """The base of merges that compute every parameter from the same parameter of each client."""

    @abstractmethod
    def piece(self, values: Tensor, hostile: int) -> Tensor:
        """Of a row for each client, in double precision, the merged numbers."""

    @abstractmethod
    def bears(self, view: ServerView, clients: int) -> int:
        """How many hostile ones among so many clients it allows for."""

    def parameters(self, view: ServerView, prototype: str, updates: Sequence[Update]) -> tuple[Tensor, Tensors]:
        weights, hostile = [update.weights for update in updates], self.bears(view, len(updates))
        count = weights[0].layout.parameter_count
        return torch.cat([self.piece(piece, hostile).float() for piece in rows(weights, count)]), {}


def medians(values: Tensor) -> Tensor:
    """Of each column; of an even number of rows the mean of the two in the middle."""
    ordered, middle = values.sort(dim=0).values, len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
