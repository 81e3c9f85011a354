"""The same piece of several checkpoints at a time, and what a merged tensor is made of, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedfuse.core.errors import DataError, shortened
from fedfuse.core.randomness import Key
from fedfuse.core.tensor_files import Like
from fedfuse.core.weights import is_finite
from fedfuse.fusing.merging.checkpoint import Checkpoint
from fedfuse.parts.merge import PiecewiseMerge, Soup
from fedfuse.parts.merge.piecewise import PIECE, Stack, Stacks, Survey, keys_of

COUNTER, STATISTICS = "num_batches_tracked", ("running_mean", "running_var")
"""The last words of the names of what BatchNorm layers gather."""
AVERAGE = Soup(form="uniform")


class FileStacks(Stacks):
    """Pieces of the tensors that are merged; BatchNorm statistics and whole numbers are not among them."""

    def __init__(self, models: Sequence[Checkpoint], base: Checkpoint | None, key: Key) -> None:
        self.models, self.base, self.key = models, base, key
        self.number = len(models)
        self.places = tuple(str(place) for place in range(len(models)))
        self.names = tuple(
            name
            for name, held in models[0].tensors.items()
            if held.place.dtype.is_floating_point and not _is_statistic(name)
        )

    def of(self, name: str) -> Iterator[Stack]:
        for begin, end in borders(self.models[0].tensors[name].like):
            models = tuple(_numbers(model, name, begin, end) for model in self.models)
            base = models[0] if self.base is None else _numbers(self.base, name, begin, end)
            yield Stack(name, base, models, keys_of(self.key, self.places, name, begin))


@dataclass(frozen=True)
class Merging:
    """A merge of checkpoints that were looked through already."""

    stacks: FileStacks
    merge: PiecewiseMerge
    shares: Sequence[float]
    survey: Survey

    def pieces(self, name: str) -> Iterator[Tensor]:
        """The merged tensor, in the type that the models have it in."""
        held = self.stacks.models[0].tensors[name]
        if not held.place.dtype.is_floating_point:
            yield from self._constant(name)
            return
        for stack in self.stacks.of(name):
            merge = AVERAGE if _is_statistic(name) else self.merge
            merged = merge.piece(stack, self.shares, self.survey).to(held.place.dtype)
            if not is_finite(merged.double()):
                raise DataError(f"{shortened(name)!a} has numbers, once merged, that are too large for {held.like}")
            yield merged

    def _constant(self, name: str) -> Iterator[Tensor]:
        """Whole numbers are constants of an architecture, or BatchNorm's counters, of which the first one's do."""
        first, *others = self.stacks.models
        for begin, end in borders(first.tensors[name].like):
            numbers = first.read(name, begin, end)
            for other in others:
                if name.rpartition(".")[2] != COUNTER and not torch.equal(other.read(name, begin, end), numbers):
                    raise DataError(
                        f"{other.path}: {shortened(name)!a} has other whole numbers than in {first.path}, which no "
                        "merge can average"
                    )
            yield numbers


def borders(like: Like) -> Iterator[tuple[int, int]]:
    """Where pieces of such a tensor begin and end."""
    return ((begin, min(begin + PIECE, like.size)) for begin in range(0, like.size, PIECE))


def _numbers(checkpoint: Checkpoint, name: str, begin: int, end: int) -> Tensor:
    numbers = checkpoint.read(name, begin, end).double()
    if not is_finite(numbers):
        raise DataError(f"{checkpoint.tensors[name].path}: {shortened(name)!a} has numbers that are not finite")
    return numbers


def _is_statistic(name: str) -> bool:
    return name.rpartition(".")[2] in STATISTICS
