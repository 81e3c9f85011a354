"""Ensemble distillation: source -> teachers -> predictions -> target -> student -> smooth.

The fusion of FedDF (Lin et al., 2020), Algorithms 1 and 3. For every prototype P, starting from x_{t,0} = the average
of P's own clients, or P's last weights if no client of the round runs it:

    x_{t,j} = x_{t,j-1} - eta  d/dx KL( sigma( (1/|S_t|) sum_{k in S_t} f(xhat_k, d) ),  sigma( f(x_{t,j-1}, d) ) )

The teachers are ALL received models, of whatever architecture; with one prototype this is Algorithm 1. With further
teachers, mean probabilities, sharpening and SWA it is the fusion of FedBE (Chen and Chao, 2021).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from fedfuse.core.messages import Update
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ServerView
from fedfuse.parts.fuse.base import Fused
from fedfuse.parts.fuse.batches import DistillBatch, batches_from
from fedfuse.parts.fuse.distiller import Distilled, Distiller, teach
from fedfuse.parts.fuse.ensemble import EnsembleFuse
from fedfuse.parts.fuse.students import StudentFuse
from fedfuse.parts.fuse.teachers import Ensemble
from fedfuse.runtime.source import Source


class EnsembleDistillation(EnsembleFuse, StudentFuse):
    """Distil the ensemble of client models into one student per prototype."""

    kind: Literal["ensemble_distillation"] = "ensemble_distillation"
    takes_fresh_inputs: ClassVar[bool] = True
    sharpening: float = Field(1.0, gt=0, description="power to which the target's probabilities are raised; FedBE: 2")
    views: Literal["fixed", "student", "augmented"] = Field(
        "fixed",
        description="fixed: teachers answer once per input; student: and only the student's input is augmented, as "
        "FedBE; augmented: both see the same fresh augmentation at every step, as FedDF's code",
    )
    distiller: Distiller = Field(default_factory=Distiller)

    @model_validator(mode="after")
    def _testimony_is_about_fixed_inputs(self) -> Self:
        if self.weighting == "testimony" and self.views == "augmented":
            raise ValueError("clients testify about the public inputs as they are; set views to fixed or student")
        return self

    def check(self, context: CheckContext) -> None:
        super().check(context)
        self.distiller.check(context, "method.fuse.distiller")

    def trains_without_clients(self, prototype: str) -> bool:
        return super().trains_without_clients(prototype) and self.distiller.steps != 0

    def fuse(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> Fused:
        assert view.source is not None, "checked before round 1"
        if self.distiller.budget(len(view.source)) == 0:
            return Fused(merged)
        ensemble, starts = self._ensemble(view, merged, teachers), self.starts(view, merged)
        students = {p: start for p, start in starts.items() if not self._is_its_own_teacher(p, start, ensemble)}
        untaught = Fused(starts, {prototype: Distilled(0, 0).report() for prototype in starts})
        if not students:
            return untaught
        taught = teach(view, self.distiller, students, self._batches(view, view.source, ensemble))
        return Fused({**starts, **taught.weights}, {**untaught.report, **taught.report})

    def _is_its_own_teacher(self, prototype: str, start: Weights, ensemble: Ensemble) -> bool:
        """Whether all teachers are the student as it starts, so that there is nothing but rounding to learn.

        With one client in the round, Algorithm 1 leaves its model; Adam would make steps of any gradient.
        """
        as_taught = self.sharpening == 1 and self.views != "student" and self.distiller.loss in ("kl", "kl_elementwise")
        return as_taught and all(t.prototype == prototype and t.weights.equals(start) for t in ensemble.teachers)

    def _batches(self, view: ServerView, source: Source, ensemble: Ensemble) -> list[DistillBatch]:
        """One plan of mini-batches for all students, so that teachers answer once for all of them."""
        plan = self.distiller.plan(source, view.key)
        if self.views == "augmented" or source.draw is not None:
            return [partial(self._fresh, source, ensemble, *step) for step in plan]
        asked = torch.cat([where for where, _ in plan]).unique()
        answers = self._sharpen(ensemble.predict(source, asked, view.progress, view.pool))
        return batches_from(source, answers, plan, augmented=self.views == "student")

    def _fresh(self, source: Source, ensemble: Ensemble, where: Tensor, key: Key) -> tuple[Tensor, Tensor]:
        """A step with new views, or new inputs altogether, for which teachers answer now."""
        batch = source.part(where) if source.draw is None else source.drawn(self.distiller.batch_size, key)
        every = batch.all_indices()
        shown = batch.inputs(every) if self.views == "fixed" else batch.augmented(every, key)
        asked = batch.inputs(every) if self.views == "student" else shown
        return shown, self._sharpen(ensemble.log_probabilities(asked))

    def _sharpen(self, log_probabilities: Tensor) -> Tensor:
        """p^s / sum p^s."""
        return log_probabilities if self.sharpening == 1 else (self.sharpening * log_probabilities).log_softmax(dim=1)
