"""The base of scores that look at nothing but what a teacher says: w_k(x) = g(p_k(x)) / sum_i g(p_i(x))."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from fedfuse.core.messages import Update
from fedfuse.parts.context import ServerView
from fedfuse.parts.scores.base import Coefficient, Said, Scores

FLOOR = 1e-8
"""What every teacher counts at least, so that there is a mean where all are worth nothing."""


class ByOutputs(Scores):
    """A teacher counts input by input, by its own probabilities p for it.

    By how far its first choice is ahead of its second:

    >>> from fedfuse.parts.scores import ByOutputs
    >>> class ByMargin(ByOutputs):
    ...     def of(self, probabilities):
    ...         first, second = probabilities.topk(2, dim=1).values.T
    ...         return first - second
    >>> ByMargin().of(torch.tensor([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]]))
    tensor([0.2500, 1.0000])
    """

    @abstractmethod
    def of(self, probabilities: Tensor) -> Tensor:
        """g: how much each row counts, on any scale, n values that are not negative."""

    def weigh(self, probabilities: Tensor) -> Tensor:
        """How much a teacher counts on each input, n x 1."""
        return self.of(probabilities).unsqueeze(1) + FLOOR

    def weights(self, said: Sequence[Said]) -> list[Tensor]:
        weighed = torch.stack([self.weigh(one.probabilities.double()) for one in said])
        return list((weighed / weighed.sum(dim=0)).float())

    def of_models(self, view: ServerView, updates: Sequence[Update]) -> list[Coefficient]:
        return [1.0 for _ in updates]
