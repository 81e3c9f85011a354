"""Distil the clients' own predictions on public inputs: the fusion of FedED.

    zT_j = sum_k w_k z_k(x_j);   student <- argmin sum_j loss( zT_j, f(w, x_j) )

over all clients k, or at each step over some of them, drawn anew.
The server never sees a client's weights. A student may be of a prototype that no client runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor

from fedfuse.core.errors import ConfigError, unknown
from fedfuse.core.messages import Update
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ServerView
from fedfuse.parts.fuse.base import Fuse, Fused, FusionWork, Reads
from fedfuse.parts.fuse.batches import DistillBatch, batches_from, told
from fedfuse.parts.fuse.distiller import Distiller, teach
from fedfuse.runtime.source import Source


class PredictionDistillation(Fuse):
    """Train one student per prototype towards the clients' weighted predictions."""

    kind: Literal["prediction_distillation"] = "prediction_distillation"
    reads: ClassVar[Reads] = "predictions"
    students: tuple[str, ...] | None = Field(
        None, min_length=1, description="which models to distil; null: all of them"
    )
    start: Literal["fresh", "previous"] = Field("fresh", description="a new student every round, or last round's")
    teachers_per_step: float = Field(
        1.0,
        gt=0,
        le=1,
        description="share of the clients that are heard at each step of the distillation, drawn anew (gamma of "
        "FedED's Algorithm 2, which the thesis sets to 1)",
    )
    distiller: Distiller = Field(default_factory=Distiller, description="how the students are trained")

    def check(self, context: CheckContext) -> None:
        super().check(context)
        self.distiller.check(context, "method.fuse.distiller")
        for name in self.students or ():
            if name not in context.bank.prototypes:
                raise ConfigError(f"method.fuse.students: {unknown('model', name, context.bank.prototypes)}")

    def trains_without_clients(self, prototype: str) -> bool:
        return self.students is None or prototype in self.students

    def passes(self, work: FusionWork) -> Mapping[str, float]:
        return self.distiller.passes(work)

    def fuse(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> Fused:
        view = _answered(view)
        if not len(view.public):
            return Fused({})
        return teach(view, self.distiller, self._begin(view), self._batches(view, view.public, teachers))

    def _batches(self, view: ServerView, source: Source, teachers: Sequence[Update]) -> list[DistillBatch]:
        plan = self.distiller.plan(source, view.key)
        heard = max(1, round(self.teachers_per_step * len(teachers)))
        if heard == len(teachers):
            return batches_from(source, view.said.log_probabilities, plan)
        return [partial(told, source, self._some(view, teachers, heard, *step), step[0]) for step in plan]

    def _some(self, view: ServerView, teachers: Sequence[Update], heard: int, where: Tensor, key: Key) -> Tensor:
        """What so many clients, drawn for this step, say together about its inputs."""
        drawn = sorted(key.child("teachers").numpy().choice(len(teachers), size=heard, replace=False).tolist())
        return view.said_by([teachers[place] for place in drawn], where).log_probabilities

    def _begin(self, view: ServerView) -> Mapping[str, Weights]:
        students = self.students or view.bank.prototypes
        if self.start == "previous":
            return {p: view.weights[p] for p in students}
        return {p: view.bank.initial(p, view.key.child(p, "student")) for p in students}

    def ensemble(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> None:
        """The server has no client's model to ask."""
        return


def _answered(view: ServerView) -> ServerView:
    """The view with nothing but the public inputs to which the teachers have an answer."""
    said = view.said
    if said.answered is None or bool(said.answered.all()):
        return view
    rows = said.answered.nonzero().squeeze(1)
    return replace(
        view,
        source=view.public.part(rows),
        predictions=said.at(rows),
        combine=lambda teachers, where: view.said_by(teachers, rows[where]),
    )
