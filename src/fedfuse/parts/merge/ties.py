"""TIES-Merging (Yadav et al., TIES-Merging: Resolving Interference When Merging Models, NeurIPS 2023).

    trim    tau_k = theta_k - theta; keep the ``density`` of its numbers with the largest |tau_k|, zero for the others
    elect   gamma = sgn(sum_k tau_k), number by number
    merge   theta + lambda (mean of those tau_k that are not zero and have the sign gamma)

Where the sum is exactly 0 no sign is elected, as printed, and the number is the base's. Of numbers that are just as
large as the smallest one kept, all are kept. With ``weighting: examples`` both sums are weighted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.parts.merge.magnitudes import magnitude, thresholds
from fedfuse.parts.merge.piecewise import PiecewiseMerge, Stack, Stacks, Survey
from fedfuse.parts.merge.trained import UniformMerge

WHOLE = ""
"""The name of no tensor."""


class Ties(UniformMerge, PiecewiseMerge):
    """The base, moved by what models agree on: largest changes only, of one sign."""

    kind: Literal["ties"] = "ties"
    density: float = Field(0.2, gt=0, le=1, description="share of every task vector that is kept; 20 % in the paper")
    scale: float = Field(1.0, description="lambda; 1 where there is nothing to tune it on")
    trim: Literal["model", "tensor"] = Field(
        "model", description="model: the largest numbers of the whole model, as the paper; tensor: of each tensor"
    )

    def survey(self, stacks: Stacks) -> Survey:
        """The smallest magnitudes that are kept, by tensor or of all."""
        if self.density == 1:
            return {}
        groups = {WHOLE: stacks.names} if self.trim == "model" else {name: (name,) for name in stacks.names}
        return {
            group: thresholds(partial(_moves, stacks, names), self.density, stacks.number)
            for group, names in groups.items()
        }

    def piece(self, stack: Stack, shares: Sequence[float], survey: Survey) -> Tensor:
        moves = [model - stack.base for model in stack.models]
        if survey:
            least = survey[WHOLE if self.trim == "model" else stack.name]
            moves = [move.where(magnitude(move) >= one, 0.0) for move, one in zip(moves, least, strict=True)]
        mean, anybody = _agreeing(moves, stack.models, shares)
        # From the models and not from their moves: one model alone is then itself, and not only up to rounding.
        return (self.scale * mean + (1 - self.scale) * stack.base).where(anybody, stack.base)


def _moves(stacks: Stacks, names: Sequence[str]) -> Iterator[Sequence[Tensor]]:
    for name in names:
        for stack in stacks.of(name):
            yield [model - stack.base for model in stack.models]


def _agreeing(moves: Sequence[Tensor], models: Sequence[Tensor], shares: Sequence[float]) -> tuple[Tensor, Tensor]:
    """The mean of those models that moved in the elected direction, and where there is any."""
    mass = torch.zeros_like(moves[0])
    for move, share in zip(moves, shares, strict=True):
        mass.add_(move, alpha=share)
    total, count = torch.zeros_like(mass), torch.zeros_like(mass)
    for move, model, share in zip(moves, models, shares, strict=True):
        agrees = move * mass > 0
        total.add_(model.where(agrees, 0.0), alpha=share)
        count.add_(agrees, alpha=share)
    return total / count, count > 0
