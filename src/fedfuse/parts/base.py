"""The base of a method's parts, and what a part may ask of the experiment before round 1.

A part fills one slot: aggregation is ``merge``, robust aggregation ``screen`` and ``merge``, compression ``upload``,
knowledge distillation ``fuse`` on the server and ``local`` or ``protocol`` on clients. docs/glossary.md has the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from fedfuse.core.messages import Tensors
from fedfuse.core.part import Part
from fedfuse.core.releases import Release
from fedfuse.parts.tensor_spec import TensorSpec
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.optimizers import Optimizer

Shapes = Mapping[str, tuple[int, ...] | TensorSpec]
"""Names and shapes of tensors that a message brings; a TensorSpec also says their type and range."""


@dataclass(frozen=True)
class CheckContext:
    """The experiment that a part is about to work in."""

    bank: ModelBank
    optimizer: Optimizer
    has_validation: bool
    inputs: int | None = None
    """How many public inputs a fusion has, if there are any."""
    sends_predictions: bool = False
    """Whether predictions are what clients send, and no weights."""
    most_in_a_round: Mapping[str, int] = field(default_factory=dict)
    """By prototype, how many clients a round can have at most, as far as that is known."""


class MethodPart(Part):
    """A start, a protocol, a link of an upload, scores, a local objective, a screen, a merge or a fusion."""

    kind: str

    needs_source: ClassVar[bool] = False
    """Whether it reads unlabelled inputs on the server."""

    takes_fresh_inputs: ClassVar[bool] = False
    """Whether these may be new at every step, and not the same inputs again."""

    takes_synthesised_inputs: ClassVar[bool] = False
    """Whether these may be made in the round, from its teachers, and not be there before."""

    needs_labels: ClassVar[bool] = False
    """Whether it reads the true labels of those inputs, which only a bound or a labelled public set allows."""

    nan_is_no_value: ClassVar[bool] = False
    """Whether NaN in what it remembers stands for what it does not know; else such a memory is not taken over."""

    extras_of: ClassVar[Literal["examples", "model"]] = "examples"
    """What the extras are made of that clients send for it: their examples, or nothing but what they received and the
    model that they trained, which is as private as that model."""

    @property
    def counts_examples(self) -> bool:
        """Whether clients count in it by how many examples they have."""
        return False

    def sensitivity(self) -> float | None:
        """How far, in Euclidean norm, one example can move the extras that a client sends for it; None: who knows."""
        return None

    def own_release(self) -> Release | None:
        """What those extras give away of an example, where the part has added noise to them itself."""
        return None

    def in_range(self, extras: Tensors) -> Tensors:
        """Those extras after noise, where they have to be in a range."""
        return extras

    def check(self, context: CheckContext) -> None:
        """Raise a ConfigError with the reason if this part cannot work in this setting."""

    def within_bounds(self, said: Sequence[Tensors], examples: Sequence[int]) -> list[Tensors]:
        """What a round's clients told this part, none of it out of all proportion to what the others did.

        ``examples`` are theirs, within bounds already. Whoever says nothing unusual keeps the very object (claims.py).
        """
        return list(said)


def joint_sensitivity(parts: Iterable[MethodPart]) -> float | None:
    """How far one example can move the extras of all of these together; None: who knows."""
    each = [part.sensitivity() for part in parts]
    known = [own for own in each if own is not None]
    return math.hypot(*known) if len(known) == len(each) else None


def speaks_for(part: MethodPart, word: str, method: str) -> bool:
    """Whether a part's word is about its own method, and not inherited from a part whose method it replaces."""
    return next(word in vars(kind) for kind in type(part).__mro__ if {word, method} & vars(kind).keys())
