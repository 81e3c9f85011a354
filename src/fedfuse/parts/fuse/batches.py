"""What a student is shown step by step: inputs, and the teachers' log-probabilities for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice

from torch import Tensor

from fedfuse.core.randomness import Key
from fedfuse.runtime.batches import endless_batches
from fedfuse.runtime.source import Source

DistillBatch = Callable[[], tuple[Tensor, Tensor]]
"""One step's inputs and the teachers' log-probabilities for them, made when it is needed."""

Step = tuple[Tensor, Key]
"""Positions of one step's inputs in the source, and the key of how they are shown."""


def steps_of(source: Source, steps: int, batch_size: int, key: Key) -> list[Step]:
    """A distillation's whole plan of mini-batches, one permutation of the source after another."""
    batches = endless_batches(len(source), batch_size, key.child("batches"), source.lengths)
    return [(where, key.child("views", number)) for number, where in enumerate(islice(batches, steps))]


def batches_from(source: Source, answers: Tensor, plan: list[Step], augmented: bool = False) -> list[DistillBatch]:
    """The plan as batches, from a table of answers about the source; ``augmented`` inputs are new views of them."""
    return [partial(remembered, source, answers, where, views if augmented else None) for where, views in plan]


def remembered(source: Source, answers: Tensor, where: Tensor, views: Key | None = None) -> tuple[Tensor, Tensor]:
    """A batch from a table of answers about the source, which may lie anywhere."""
    inputs = source.inputs(where) if views is None else source.augmented(where, views)
    return inputs, answers[where].to(source.compute.device)


def told(source: Source, answers: Tensor, where: Tensor) -> tuple[Tensor, Tensor]:
    """A batch from answers about its own inputs only."""
    return source.inputs(where), answers.to(source.compute.device)
