"""DARE (Yu et al., Language Models are Super Mario: Absorbing Abilities from Homologous Models, ICML 2024).

Every number of a task vector is dropped with probability p, and what is left grows so that its expectation stays:

    m_k ~ Bernoulli(1 - p);    tau_k <- m_k tau_k / (1 - p)

1 - p is ``density``. Then another merge goes on with theta + tau_k in the place of theta_k.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.choice import OneOf
from fedfuse.core.randomness import Key
from fedfuse.parts.merge.piecewise import PiecewiseMerge, Stack, Stacks, Survey
from fedfuse.parts.merge.task_arithmetic import TaskArithmetic
from fedfuse.parts.merge.ties import Ties

AnyThen = Annotated[PiecewiseMerge, OneOf(TaskArithmetic, Ties)]


class Dare(PiecewiseMerge):
    """Models of whose changes a random part is left, which another merge combines."""

    kind: Literal["dare"] = "dare"
    density: float = Field(0.1, gt=0, le=1, description="share of every task vector that is kept: 1 - p of the paper")
    then: AnyThen = Field(default_factory=TaskArithmetic, description="the merge of what is left")

    def coefficients(self, examples: Sequence[int]) -> list[float]:
        return self.then.coefficients(examples)

    def survey(self, stacks: Stacks) -> Survey:
        return self.then.survey(_Thinned(stacks, self.density))

    def piece(self, stack: Stack, shares: Sequence[float], survey: Survey) -> Tensor:
        return self.then.piece(thinned(stack, self.density), shares, survey)


class _Thinned(Stacks):
    """The pieces as the next merge sees them."""

    def __init__(self, stacks: Stacks, density: float) -> None:
        self.stacks, self.density = stacks, density
        self.names, self.number = stacks.names, stacks.number

    def of(self, name: str) -> Iterator[Stack]:
        return (thinned(stack, self.density) for stack in self.stacks.of(name))


def thinned(stack: Stack, density: float) -> Stack:
    """The same models, most of their changes dropped and the others made larger."""
    if density == 1:
        return stack
    models = (_thinned(model, stack.base, density, key) for model, key in zip(stack.models, stack.keys, strict=True))
    return replace(stack, models=tuple(models))


def _thinned(model: Tensor, base: Tensor, density: float, key: Key) -> Tensor:
    kept = torch.rand(base.shape, generator=key.child("kept").torch()) < density
    return (base + (model - base) / density).where(kept, base)
