"""Ensemble distillation: source -> teachers -> predictions -> target -> student -> smooth.

The fusion of FedDF (Lin et al., 2020), Algorithms 1 and 3. For every prototype P, starting from x_{t,0} = the average
of P's own clients, or P's last weights if no client of the round runs it:

    x_{t,j} = x_{t,j-1} - eta  d/dx KL( sigma( (1/|S_t|) sum_{k in S_t} f(xhat_k, d) ),  sigma( f(x_{t,j-1}, d) ) )

The teachers are ALL received models, of whatever architecture; with one prototype this is Algorithm 1. With further
teachers, mean probabilities, sharpening and SWA it is the fusion of FedBE (Chen and Chao, 2021).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor

from fedfuse.core.messages import Update
from fedfuse.core.weights import Weights
from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ServerView
from fedfuse.parts.fuse.answers import AnswerTable, StepAnswers, fits, in_order_of_need, new
from fedfuse.parts.fuse.base import Fused, FusionWork
from fedfuse.parts.fuse.batches import DistillBatch, FreshStep, Step, Views, batches_from
from fedfuse.parts.fuse.distiller import Distilled, Distiller, teach
from fedfuse.parts.fuse.ensemble import EnsembleFuse
from fedfuse.parts.fuse.students import StudentFuse
from fedfuse.parts.fuse.synthesis import supplied
from fedfuse.parts.teachers import Asked, Ensemble
from fedfuse.runtime.pool import IN_PROCESS, Pool, Progress
from fedfuse.runtime.source import Source


class EnsembleDistillation(EnsembleFuse, StudentFuse):
    """Distil the ensemble of client models into one student per prototype."""

    kind: Literal["ensemble_distillation"] = "ensemble_distillation"
    takes_fresh_inputs: ClassVar[bool] = True
    takes_synthesised_inputs: ClassVar[bool] = True
    sharpening: float = Field(1.0, gt=0, description="power to which the target's probabilities are raised; FedBE: 2")
    views: Views = Field(
        "fixed",
        description="fixed: teachers answer once per input; student: and only the student's input is augmented, as "
        "FedBE; augmented: both see the same fresh augmentation at every step, as FedDF's code",
    )
    distiller: Distiller = Field(default_factory=Distiller, description="how the students are trained")

    @property
    def shows_new_inputs(self) -> bool:
        return self.views == "augmented"

    def check(self, context: CheckContext) -> None:
        super().check(context)
        self.distiller.check(context, "method.fuse.distiller")

    def trains_without_clients(self, prototype: str) -> bool:
        return super().trains_without_clients(prototype) and self.distiller.steps != 0

    def passes(self, work: FusionWork) -> Mapping[str, float]:
        """Teachers answer once about every input of the plan, or anew at every step."""
        taken = max(work.steps.values(), default=0)
        if not taken:
            return {}
        anew = self.shows_new_inputs or work.is_fresh
        steps = taken if anew else self.distiller.budget(work.inputs)
        shown, taught = steps * self.distiller.shown(work), self.distiller.passes(work)
        answers = shown if anew else min(work.inputs, shown)
        asked = {prototype: answers * number for prototype, number in self.number_of_teachers(work.clients).items()}
        return {prototype: asked.get(prototype, 0) + taught.get(prototype, 0) for prototype in {**asked, **taught}}

    def fuse(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> Fused:
        if self.distiller.budget(len(view.public)) == 0:
            return Fused(merged, memory=view.memory)
        ensemble, starts = self._ensemble(view, merged, teachers), self.starts(view, merged)
        students = {p: start for p, start in starts.items() if not self._is_its_own_teacher(p, start, ensemble)}
        report = {prototype: Distilled(0, 0).report() for prototype in starts}
        untaught = Fused(starts, report, view.memory, ensemble=ensemble.why)
        if not students:
            return untaught
        given = supplied(view, ensemble, students)
        batches = self._batches(view, given.source, given.ensemble, len(students))
        taught = teach(replace(view, source=given.source), self.distiller, students, batches)
        return Fused({**starts, **taught.weights}, {**report, **taught.report}, given.memory, ensemble=ensemble.why)

    def _is_its_own_teacher(self, prototype: str, start: Weights, ensemble: Ensemble) -> bool:
        """Whether all teachers are the student as it starts, so that there is nothing but rounding to learn.

        With one client in the round, Algorithm 1 leaves its model; Adam would make steps of any gradient.
        """
        as_taught = self.sharpening == 1 and self.views != "student" and self.distiller.loss in ("kl", "kl_elementwise")
        return as_taught and all(
            t.prototype == prototype and t.loudness == 1 and t.weights.equals(start) for t in ensemble.teachers
        )

    def _batches(self, view: ServerView, source: Source, ensemble: Ensemble, students: int = 1) -> list[DistillBatch]:
        """One plan of mini-batches for all students, so that teachers answer once for all of them."""
        plan, ask = self.distiller.plan(source, view.key), partial(self._answers, ensemble)
        if self.views == "augmented" or source.draw is not None:
            kept = students > 1 and fits(plan, self.distiller.batch_size, view.bank.classes)
            pool = view.pool if kept or students == 1 else IN_PROCESS  # which may be at work on the students
            fresh = StepAnswers(self._fresh(source, plan), ask, kept, view.progress, pool)
            return [partial(new, fresh, number) for number in range(len(plan))]
        chunks = in_order_of_need(source, plan)
        coming = ask([Asked.about(source, chunk) for chunk in chunks], view.progress, view.pool)
        answers = AnswerTable(len(source), chunks, coming)
        return batches_from(source, answers, plan, augmented=self.views == "student")

    def _fresh(self, source: Source, plan: Sequence[Step]) -> list[FreshStep]:
        """Steps with new views, or new inputs altogether."""
        sizes = [len(where) if source.draw is None else self.distiller.batch_size for where, _ in plan]
        return [FreshStep(source, *step, self.views, size) for step, size in zip(plan, sizes, strict=True)]

    def _answers(
        self, ensemble: Ensemble, questions: Sequence[Asked], progress: Progress, pool: Pool
    ) -> Iterator[Tensor]:
        return map(self._sharpen, ensemble.answers(questions, progress, pool))

    def _sharpen(self, log_probabilities: Tensor) -> Tensor:
        """p^s / sum p^s."""
        return log_probabilities if self.sharpening == 1 else (self.sharpening * log_probabilities).log_softmax(dim=1)
