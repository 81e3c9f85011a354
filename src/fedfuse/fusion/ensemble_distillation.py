"""Ensemble distillation, the fusion of FedDF (Lin et al., 2020), Algorithms 1 and 3.

For every prototype P with clients in this round, starting from x_{t,0} = the average of P's own clients:

    x_{t,j} = x_{t,j-1} - eta  d/dx KL( sigma( (1/|S_t|) sum_{k in S_t} f(xhat_k, d) ),  sigma( f(x_{t,j-1}, d) ) )

The teachers are ALL received models, of whatever architecture; with one prototype this is Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.messages import Update
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.fusion.base import Fuse, Fused
from fedfuse.fusion.distiller import Distilled, Distiller, Lesson, School
from fedfuse.fusion.teachers import Ensemble, Target, Teacher
from fedfuse.runtime.batches import endless_batches
from fedfuse.runtime.source import Source
from fedfuse.runtime.view import ServerView


class EnsembleDistillation(Fuse):
    """Distil the ensemble of client models into one student per prototype."""

    kind: Literal["ensemble_distillation"] = "ensemble_distillation"
    target: Target = "mean_logits"
    start: Literal["average", "previous"] = Field(
        "average", description="weights a student starts from (FedDF Table 5)"
    )
    views: Literal["fixed", "augmented"] = Field(
        "fixed", description="fixed: teachers answer once per input; augmented: afresh at every step, as FedDF's code"
    )
    distiller: Distiller = Field(default_factory=Distiller)

    def fuse(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> Fused:
        assert view.source is not None, "checked before round 1"
        if self.distiller.steps == 0:
            return Fused(merged)
        lessons = self._lessons(view, view.source, self._ensemble(view, teachers))
        weights, report = {}, {}
        for prototype in merged:
            begin = merged[prototype] if self.start == "average" else view.weights[prototype]
            student = view.bank.lend(prototype, begin)
            school = School(view.validation, view.key.child(prototype), view.progress)
            distilled = self.distiller.distil(student, lessons, school)
            weights[prototype] = Weights.of(student, begin.layout)
            report[prototype] = _report(distilled)
        return Fused(weights, report)

    def ensemble(self, view: ServerView, teachers: Sequence[Update]) -> Callable[[Tensor], Tensor]:
        return self._ensemble(view, teachers).log_probabilities

    def _ensemble(self, view: ServerView, teachers: Sequence[Update]) -> Ensemble:
        return Ensemble(view.bank, [Teacher(u.prototype, u.weights) for u in teachers], self.target)

    def _lessons(self, view: ServerView, source: Source, ensemble: Ensemble) -> list[Lesson]:
        """One plan of mini-batches for all students, so that teachers answer once for all of them."""
        batches = endless_batches(len(source), self.distiller.batch_size, view.key.child("batches"))
        plan = list(islice(batches, self.distiller.steps))
        if self.views == "augmented":
            views = view.key.child("views")
            return [partial(_fresh, source, ensemble, where, views.child(i)) for i, where in enumerate(plan)]
        answers = ensemble.predict(source, torch.cat(plan).unique(), view.progress)
        return [partial(_remembered, source, answers, where) for where in plan]


def _remembered(source: Source, answers: Tensor, where: Tensor) -> tuple[Tensor, Tensor]:
    return source.inputs(where), answers[where]


def _fresh(source: Source, ensemble: Ensemble, where: Tensor, key: Key) -> tuple[Tensor, Tensor]:
    inputs = source.augmented(where, key)
    return inputs, ensemble.log_probabilities(inputs)


def _report(distilled: Distilled) -> dict[str, float]:
    report: dict[str, float] = {"steps": distilled.steps, "best_step": distilled.best_step}
    if distilled.validation_accuracy is not None:
        return {**report, "validation_accuracy": distilled.validation_accuracy}
    return report
