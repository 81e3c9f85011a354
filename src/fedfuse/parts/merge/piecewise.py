"""Merges that compute every number from the same number of the base and of each model.

They go through the weights piece by piece, so that models may be larger than the memory: in a federation they lie in
memory or on the round's shelf, elsewhere in files. Everything is computed in double precision and rounded once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.parts.merge.trained import ModelMerge, TrainedModels

PIECE = 1 << 20
"""Numbers of a piece. Masks are drawn piece by piece, so that another value gives other ones."""

Survey = Mapping[str, Tensor]
"""What a merge has to know of whole models before it can begin with the first piece."""


@dataclass(frozen=True)
class Stack:
    """One piece of one tensor, flat and in double precision: of the base and of each model.

    ``keys`` are where random numbers for this piece of each model come from.
    """

    name: str
    base: Tensor
    models: tuple[Tensor, ...]
    keys: tuple[Key, ...]


class Stacks(ABC):
    """All pieces, which may be gone through several times."""

    names: Sequence[str]
    """Of all tensors."""
    number: int
    """Of models."""

    @abstractmethod
    def of(self, name: str) -> Iterator[Stack]:
        """The pieces of one tensor, one after another."""


class PiecewiseMerge(ModelMerge):
    """The base of these merges."""

    @property
    def counts_from_base(self) -> bool:
        """Whether it looks at the base."""
        return True

    def survey(self, stacks: Stacks) -> Survey:
        """Look through all models before the first piece is merged."""
        return {}

    @abstractmethod
    def piece(self, stack: Stack, shares: Sequence[float], survey: Survey) -> Tensor:
        """The merged numbers, in double precision; ``shares`` sum to one."""

    def combine(self, trained: TrainedModels) -> Weights:
        """Parameters are merged; BatchNorm statistics are averaged, because a variance must not become negative."""
        stacks = WeightStacks(trained)
        survey = self.survey(stacks)
        average = trained.mean()
        pieces = (self.piece(stack, trained.shares, survey) for name in stacks.names for stack in stacks.of(name))
        merged = [piece.to(average.flat.dtype) for piece in pieces]
        return average.with_parameters(torch.cat(merged)) if merged else average


class WeightStacks(Stacks):
    """Pieces of parameters that lie in flat vectors."""

    def __init__(self, trained: TrainedModels) -> None:
        self.trained = trained
        layout = trained.base.layout
        self.entries = {entry.name: entry for entry in layout.entries[: len(layout.parameters)]}
        self.names, self.number = tuple(self.entries), len(trained.models)

    def of(self, name: str) -> Iterator[Stack]:
        entry, trained = self.entries[name], self.trained
        for begin in range(0, entry.size, PIECE):
            first, last = entry.offset + begin, entry.offset + min(begin + PIECE, entry.size)
            yield Stack(
                name,
                trained.base.between(first, last).double(),
                tuple(model.between(first, last).double() for model in trained.models),
                keys_of(trained.key, trained.names, name, begin),
            )


def keys_of(key: Key, models: Sequence[str], tensor: str, begin: int) -> tuple[Key, ...]:
    """Where the random numbers for the piece of a tensor come from that begins there, for each model."""
    return tuple(key.child("model", model, tensor, begin) for model in models)
