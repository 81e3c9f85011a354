"""What a student is shown step by step: inputs, and the teachers' log-probabilities for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Literal, Protocol

from torch import Tensor

from fedfuse.core.randomness import Key
from fedfuse.runtime.batches import endless_batches
from fedfuse.runtime.source import Shown, Source

DistillBatch = Callable[[], tuple[Tensor, Tensor]]
"""One step's inputs and the teachers' log-probabilities for them, made when it is needed."""

Views = Literal["fixed", "student", "augmented"]

Step = tuple[Tensor, Key]
"""Positions of one step's inputs in the source, and the key of how they are shown."""


@dataclass
class FreshStep:
    """A step with a new view of its inputs, or with new inputs altogether, that teachers and the student make alike."""

    source: Source
    where: Tensor
    key: Key
    views: Views
    size: int
    _made: Tensor | None = field(default=None, repr=False)

    def asked(self) -> Tensor:
        """What teachers see."""
        if self.views == "student":
            source, where = self._inputs()
            return source.inputs(where)
        if self._made is None:
            self._made = self._show()
        return self._made

    def shown(self) -> Tensor:
        """What the student sees; nobody needs it after that."""
        made, self._made = self._made, None
        return self._show() if made is None else made

    def _show(self) -> Tensor:
        source, where = self._inputs()
        return source.inputs(where) if self.views == "fixed" else source.augmented(where, self.key)

    def _inputs(self) -> tuple[Source, Tensor]:
        if self.source.draw is None:
            return self.source, self.where
        drawn = self.source.drawn(self.size, self.key)
        return drawn, drawn.all_indices()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_made": None}


def steps_of(source: Shown, steps: int, batch_size: int, key: Key) -> list[Step]:
    """A distillation's whole plan of mini-batches, one permutation of the source after another."""
    batches = endless_batches(len(source), batch_size, key.child("batches"), source.lengths)
    return [(where, key.child("views", number)) for number, where in enumerate(islice(batches, steps))]


class Table(Protocol):
    """Answers about a source: a tensor, or something that is read like one."""

    def __getitem__(self, where: Tensor, /) -> Tensor: ...


def batches_from(source: Shown, answers: Table, plan: Sequence[Step], augmented: bool = False) -> list[DistillBatch]:
    """The plan as batches, from a table of answers about the source; ``augmented`` inputs are new views of them."""
    return [partial(remembered, source, answers, where, views if augmented else None) for where, views in plan]


def remembered(source: Shown, answers: Table, where: Tensor, views: Key | None = None) -> tuple[Tensor, Tensor]:
    """A batch from a table of answers about the source, which may lie anywhere."""
    inputs = source.inputs(where) if views is None else source.augmented(where, views)
    return inputs, answers[where].to(source.compute.device)


def told(source: Source, answers: Tensor, where: Tensor) -> tuple[Tensor, Tensor]:
    """A batch from answers about its own inputs only."""
    return source.inputs(where), answers.to(source.compute.device)
