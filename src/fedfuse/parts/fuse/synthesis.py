"""Inputs for a distillation where nobody has any: made from this round's teachers, before they teach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from torch import Tensor, nn

from fedfuse.core.messages import Tensors
from fedfuse.core.weights import Weights
from fedfuse.parts.context import ServerView
from fedfuse.parts.sources.synthesised import Made, Synthesised, SynthesisedSource, synthesise
from fedfuse.parts.teachers import Ensemble, Teacher
from fedfuse.parts.teachers.question import share
from fedfuse.runtime.bank import TEACHER, ModelBank
from fedfuse.runtime.source import Source

INPUTS, LABELS = "made_inputs", "made_labels"
"""What the fusion remembers for its source."""


@dataclass(frozen=True)
class Supplied:
    """Public inputs to ask the ensemble about, the ensemble, and what the next round's inputs are made from."""

    source: Source
    ensemble: Ensemble
    memory: Tensors = field(default_factory=dict)


def supplied(view: ServerView, ensemble: Ensemble, students: Mapping[str, Weights]) -> Supplied:
    """The view's public inputs; where they are to be synthesised, those that this round's teachers gave.

    Students are the ones that are about to learn, each where it starts. Teachers may count otherwise afterwards.
    """
    source, bank = view.public, view.bank
    if not isinstance(source, SynthesisedSource):
        return Supplied(source, ensemble)
    made = synthesise(
        [partial(_lent, bank, teacher) for teacher in ensemble.teachers],
        source.wanted,
        source.settings,
        view.key.child("synthesise"),
        students=[bank.lend(prototype, weights) for prototype, weights in students.items()],
        combine=partial(_together, ensemble),
        prepare=lambda inputs: bank.compute.inputs(source.transform(inputs)),
        device=bank.compute.device,
        kept=_kept(view.memory, source.settings),
        progress=view.progress,
    )
    weighed = zip(ensemble.teachers, made.weights.tolist(), strict=True)
    return Supplied(
        Source(source.name, made.inputs, source.transform, source.compute),
        replace(ensemble, teachers=[replace(teacher, weight=teacher.weight * factor) for teacher, factor in weighed]),
        {INPUTS: made.inputs, LABELS: made.labels},
    )


def _kept(memory: Tensors, settings: Synthesised) -> Made | None:
    """The youngest of the earlier rounds' inputs, as many as stay."""
    if INPUTS not in memory:
        return None
    older = len(memory[INPUTS]) - settings.kept(len(memory[INPUTS]))
    return Made(memory[INPUTS][older:], memory[LABELS][older:])


@contextmanager
def _lent(bank: ModelBank, teacher: Teacher) -> Iterator[nn.Module]:
    yield bank.lend(teacher.prototype, teacher.weights, role=TEACHER)


def _together(ensemble: Ensemble, said: Sequence[Tensor], weights: Tensor) -> Tensor:
    """The ensemble's answer, from what its teachers say and what each counts besides."""
    tally = ensemble.tally()
    for teacher, logits, coefficient, weight in zip(
        ensemble.teachers, said, ensemble.coefficients, weights, strict=True
    ):
        everywhere = coefficient[:1] if isinstance(coefficient, Tensor) else coefficient
        tally.add(share(ensemble.target, logits * teacher.loudness, ensemble.weigh), everywhere * weight)
    return tally.log_probabilities()
