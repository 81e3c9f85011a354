"""Teachers asked together: the ensemble of client models, of any mix of architectures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from fedfuse.core.weights import Weights
from fedfuse.models.modes import evaluation_mode
from fedfuse.parts.scores import Coefficient
from fedfuse.runtime.bank import TEACHER, ModelBank
from fedfuse.runtime.pool import IN_PROCESS, Pool, Progress, in_order
from fedfuse.runtime.source import PREDICTION_BATCH, Source

Target = Literal["mean_logits", "mean_probabilities"]
"""mean_logits: average logits, then softmax (FedDF). mean_probabilities: average softmax outputs (FedBE, FedED)."""


@dataclass(frozen=True)
class Teacher:
    """One model of the ensemble, and how much it counts beside the others (any scale, the sum positive)."""

    prototype: str
    weights: Weights
    weight: Coefficient = 1.0


Weigh = Callable[[Tensor], Tensor]
"""From a teacher's probabilities to how much it counts on each input, n x 1."""


@dataclass(frozen=True)
class Question:
    """What every teacher of an ensemble is asked by itself, here or in another process: about these public inputs."""

    bank: ModelBank
    source: Source
    indices: Tensor
    target: Target
    weigh: Weigh | None = None

    def __call__(self, teacher: Teacher) -> Tensor:
        """What the teacher puts into the target, one row for each index; how much it counts as a whole is not asked."""
        with self.bank.compute.at_work(), asked(self.bank, teacher) as model:
            batches = self.indices.split(PREDICTION_BATCH)
            return torch.cat([share(self.target, model(self.source.inputs(where)), self.weigh) for where in batches])


@dataclass(frozen=True)
class Ensemble:
    """Teachers in eval mode, never asked for gradients, combined by their weights, which are normalised here.

    With ``weigh`` a teacher counts input by input, by what it says; then tables have one more column, with the weights.
    """

    bank: ModelBank
    teachers: Sequence[Teacher]
    target: Target
    weigh: Weigh | None = None

    @cached_property
    def coefficients(self) -> tuple[Coefficient, ...]:
        """The weights scaled to a mean of 1, so that equal ones are exactly 1 and leave a plain mean, bit for bit."""
        total = sum(teacher.weight for teacher in self.teachers)
        if isinstance(total, Tensor):
            total = total.clamp_min(1e-12)  # a class that no teacher has anything to say about
        return tuple(teacher.weight * len(self.teachers) / total for teacher in self.teachers)

    def log_probabilities(self, inputs: Tensor) -> Tensor:
        """The ensemble's prediction for a batch of any inputs, where every teacher counts the same everywhere."""
        total: Tensor | None = None
        for teacher, coefficient in zip(self.teachers, self.coefficients, strict=True):
            with asked(self.bank, teacher) as model:
                said = coefficient * share(self.target, model(inputs), self.weigh)
            total = said if total is None else total + said
        assert total is not None, "an ensemble has at least one teacher"
        return self._combine(total)

    def predict(self, source: Source, indices: Tensor, progress: Progress, pool: Pool = IN_PROCESS) -> Tensor:
        """The ensemble's predictions as a table over the source, filled at ``indices``.

        Each teacher goes once through all of them, so that its weights are loaded once. In whatever order teachers
        answer, their answers are added in the order of the teachers.
        """
        device, number = self.bank.compute.device, len(self.teachers)
        columns = self.bank.classes + (self.weigh is not None)
        totals = torch.zeros(len(source), columns, device=device)
        question = Question(self.bank, source, indices, self.target, self.weigh)
        asked_alone = [replace(teacher, weight=1.0) for teacher in self.teachers]
        progress("teachers", 0, number)
        for place, said in enumerate(in_order(pool.map("teacher", question, asked_alone))):
            coefficient = self.coefficients[place]
            factor = coefficient[indices] if isinstance(coefficient, Tensor) else coefficient
            totals[indices] += factor * said.to(device)
            progress("teachers", place + 1, number)
        return self._combine(totals)

    def _combine(self, total: Tensor) -> Tensor:
        average = total / len(self.teachers)
        if self.weigh is not None:
            average = average[:, :-1] / average[:, -1:].clamp_min(1e-30)
        return average.log_softmax(dim=1) if self.target == "mean_logits" else average.clamp_min(1e-30).log()


def share(target: Target, logits: Tensor, weigh: Weigh | None = None) -> Tensor:
    """What the ensemble averages."""
    said = logits if target == "mean_logits" else logits.softmax(dim=1)
    if weigh is None:
        return said
    weight = weigh(logits.softmax(dim=1))
    return torch.cat([weight * said, weight], dim=1)


@contextmanager
def asked(bank: ModelBank, teacher: Teacher) -> Iterator[Callable[[Tensor], Tensor]]:
    """The teacher's network, to be asked and not to be trained."""
    model = bank.lend(teacher.prototype, teacher.weights, role=TEACHER)
    with torch.no_grad(), evaluation_mode(model):
        yield model
