"""Teachers asked together: the ensemble of client models, of any mix of architectures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor

from fedfuse.core.weights import DistantWeights, Weights
from fedfuse.parts.scores import Coefficient
from fedfuse.parts.teachers.question import InputBatch, Question, Target, Teacher, Together, Weigh, asked, share
from fedfuse.parts.teachers.tally import JointTally, Tally, of_mean_one
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.pool import IN_PROCESS, Pool, Progress, in_order
from fedfuse.runtime.predict import in_small_batches
from fedfuse.runtime.source import Source


@dataclass(frozen=True)
class Asked:
    """Batches of inputs that are asked about together, and where they lie in the source, if they lie there."""

    batches: Sequence[InputBatch]
    where: Tensor | None = None

    @staticmethod
    def about(source: Source, indices: Tensor) -> Asked:
        """The un-augmented inputs at these positions."""
        return Asked([partial(source.inputs, where) for where in source.batches(indices)], indices)


@dataclass(frozen=True)
class Ensemble:
    """Teachers in eval mode, never asked for gradients, combined by their weights, which are normalised here.

    With ``weigh`` a teacher counts input by input, by what it says; with ``together``, by what it says beside the
    others.
    """

    bank: ModelBank
    teachers: Sequence[Teacher]
    target: Target
    weigh: Weigh | None = None
    together: Together | None = None
    why: str = ""
    """One sentence, where it was chosen how teachers are heard."""

    @cached_property
    def coefficients(self) -> tuple[Coefficient, ...]:
        return of_mean_one([teacher.weight for teacher in self.teachers])

    def log_probabilities(self, inputs: Tensor) -> Tensor:
        """The ensemble's prediction for a batch of any inputs, where every teacher counts the same everywhere."""
        tally = self.tally()
        for teacher, coefficient in zip(self.teachers, self.coefficients, strict=True):
            with asked(self.bank, teacher) as model:
                tally.add(share(self.target, in_small_batches(model, inputs), self.weigh), coefficient)
        return tally.log_probabilities()

    def answers(self, questions: Sequence[Asked], progress: Progress, pool: Pool = IN_PROCESS) -> Iterator[Tensor]:
        """The ensemble's predictions for one question after another, as they are taken.

        A pool with other processes goes on with the next questions meanwhile. In whatever order teachers answer, their
        answers are added in the order of the teachers.
        """
        number = len(self.teachers)
        said = in_order(pool.map("teacher", _answer, self._jobs(questions)))
        progress("teachers", 0, number * len(questions))
        for place, question in enumerate(questions):
            tally = self.tally()
            for nth, coefficient in enumerate(self.coefficients, start=1):
                tally.add(next(said).to(self.bank.compute.device), _at(coefficient, question.where))
                progress("teachers", number * place + nth, number * len(questions))
            yield tally.log_probabilities()

    def each(self, question: Asked, pool: Pool = IN_PROCESS) -> list[Tensor]:
        """Every teacher's own logits, on the CPU."""
        alone = Question(self.bank, question.batches, "mean_logits")
        jobs = [(alone, _alone(teacher)) for teacher in self.teachers]
        return [logits.cpu() for logits in in_order(pool.map("teacher", _answer, jobs))]

    def predict(self, source: Source, indices: Tensor, progress: Progress, pool: Pool = IN_PROCESS) -> Tensor:
        """The ensemble's predictions as a table over the source, filled at ``indices``."""
        [said] = self.answers([Asked.about(source, indices)], progress, pool)
        table = torch.zeros(len(source), said.shape[1], device=said.device)
        table[indices] = said
        return table

    def tally(self) -> Tally:
        """An answer of nobody yet."""
        if self.together is not None:
            return JointTally(self.target, self.together)
        return Tally(self.target, has_weights=self.weigh is not None)

    def _jobs(self, questions: Sequence[Asked]) -> list[tuple[Question, Teacher]]:
        """Every teacher's part of every question, in the order in which they are needed."""
        asked = [Question(self.bank, question.batches, self.target, self.weigh) for question in questions]
        return [(question, _alone(teacher)) for question in asked for teacher in self.teachers]


def _answer(job: tuple[Question, Teacher]) -> Tensor:
    question, teacher = job
    return question(teacher)


def _alone(teacher: Teacher) -> Teacher:
    """The teacher as it travels: its weights go with every job, so that no process ever holds all teachers."""
    weights = teacher.weights
    apart = weights if isinstance(weights, DistantWeights) else Weights(weights.flat.view(-1), weights.layout)
    return Teacher(teacher.prototype, apart, loudness=teacher.loudness)


def _at(coefficient: Coefficient, where: Tensor | None) -> Coefficient:
    return coefficient[where] if isinstance(coefficient, Tensor) and where is not None else coefficient
