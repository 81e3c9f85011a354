"""Teachers asked together: the ensemble of client models, of any mix of architectures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from fedfuse.core.weights import Weights
from fedfuse.fusion.weighting import Trust
from fedfuse.runtime.bank import TEACHER, ModelBank
from fedfuse.runtime.evaluate import evaluation_mode
from fedfuse.runtime.source import PREDICTION_BATCH, Source
from fedfuse.runtime.view import Progress

Target = Literal["mean_logits", "mean_probabilities"]
"""mean_logits: average logits, then softmax (FedDF). mean_probabilities: average softmax outputs (FedBE, FedED)."""


@dataclass(frozen=True)
class Teacher:
    """One model of the ensemble, and how much it counts beside the others (any scale, the sum positive)."""

    prototype: str
    weights: Weights
    weight: Trust = 1.0


@dataclass(frozen=True)
class Ensemble:
    """Teachers in eval mode, never asked for gradients, combined by their weights, which are normalised here."""

    bank: ModelBank
    teachers: Sequence[Teacher]
    target: Target

    @cached_property
    def coefficients(self) -> tuple[Trust, ...]:
        """The weights scaled to a mean of 1, so that equal ones are exactly 1 and leave a plain mean, bit for bit."""
        total = sum(teacher.weight for teacher in self.teachers)
        if isinstance(total, Tensor):
            total = total.clamp_min(1e-12)  # a class that no teacher has anything to say about
        return tuple(teacher.weight * len(self.teachers) / total for teacher in self.teachers)

    def log_probabilities(self, inputs: Tensor) -> Tensor:
        """The ensemble's prediction for a batch of any inputs, where every teacher counts the same everywhere."""
        total: Tensor | None = None
        for teacher, coefficient in zip(self.teachers, self.coefficients, strict=True):
            with self._asked(teacher) as model:
                share = coefficient * self._share(model(inputs))
            total = share if total is None else total + share
        assert total is not None, "an ensemble has at least one teacher"
        return self._combine(total)

    def predict(self, source: Source, indices: Tensor, progress: Progress) -> Tensor:
        """The ensemble's predictions as a table over the source, filled at ``indices``.

        Each teacher goes once through all of them, so that its weights are loaded once.
        """
        totals = torch.zeros(len(source), self.bank.classes, device=self.bank.compute.device)
        for done, (teacher, coefficient) in enumerate(zip(self.teachers, self.coefficients, strict=True)):
            progress("teachers", done, len(self.teachers))
            with self._asked(teacher) as model:
                for where in indices.split(PREDICTION_BATCH):
                    factor = coefficient[where] if isinstance(coefficient, Tensor) else coefficient
                    totals[where] += factor * self._share(model(source.inputs(where)))
        progress("teachers", len(self.teachers), len(self.teachers))
        return self._combine(totals)

    def _share(self, logits: Tensor) -> Tensor:
        return logits if self.target == "mean_logits" else logits.softmax(dim=1)

    def _combine(self, total: Tensor) -> Tensor:
        average = total / len(self.teachers)
        return average.log_softmax(dim=1) if self.target == "mean_logits" else average.clamp_min(1e-30).log()

    @contextmanager
    def _asked(self, teacher: Teacher) -> Iterator[Callable[[Tensor], Tensor]]:
        model = self.bank.lend(teacher.prototype, teacher.weights, role=TEACHER)
        with torch.no_grad(), evaluation_mode(model):
            yield model
