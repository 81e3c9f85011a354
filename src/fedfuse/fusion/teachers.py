"""Teachers asked together: the ensemble of client models, of any mix of architectures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from fedfuse.core.weights import Weights
from fedfuse.runtime.bank import TEACHER, ModelBank
from fedfuse.runtime.evaluate import evaluation_mode
from fedfuse.runtime.source import Source
from fedfuse.runtime.view import Progress

Target = Literal["mean_logits", "mean_probabilities"]
"""mean_logits: average logits, then softmax (FedDF). mean_probabilities: average softmax outputs (FedBE, FedED)."""

PREDICTION_BATCH = 500
"""Fixed, so that predictions do not depend on who computes them or in what order they are needed."""


@dataclass(frozen=True)
class Teacher:
    """One model of the ensemble."""

    prototype: str
    weights: Weights


@dataclass(frozen=True)
class Ensemble:
    """Teachers in eval mode, never asked for gradients, combined with equal weights."""

    bank: ModelBank
    teachers: Sequence[Teacher]
    target: Target

    def log_probabilities(self, inputs: Tensor) -> Tensor:
        """The ensemble's prediction for a batch of inputs."""
        total: Tensor | None = None
        for teacher in self.teachers:
            with self._asked(teacher) as model:
                share = self._share(model(inputs))
            total = share if total is None else total + share
        assert total is not None, "an ensemble has at least one teacher"
        return self._combine(total)

    def predict(self, source: Source, indices: Tensor, progress: Progress) -> Tensor:
        """The ensemble's predictions as a table over the source, filled at ``indices``.

        Each teacher goes once through all of them, so that its weights are loaded once.
        """
        totals = torch.zeros(len(source), self.bank.classes, device=self.bank.compute.device)
        for done, teacher in enumerate(self.teachers):
            progress("teachers", done, len(self.teachers))
            with self._asked(teacher) as model:
                for where in indices.split(PREDICTION_BATCH):
                    totals[where] += self._share(model(source.inputs(where)))
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
