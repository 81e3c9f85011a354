"""Distil the clients' own predictions on public inputs: the fusion of FedED.

    zT_j = sum_k w_k z_k(x_j);   student <- argmin sum_j loss( zT_j, f(w, x_j) )

The server never sees a client's weights. Every prototype gets a student, also one that no client runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor

from fedfuse.core.messages import Update
from fedfuse.core.weights import Weights
from fedfuse.fusion.base import Fuse, Fused
from fedfuse.fusion.distiller import Distiller, Lesson, School
from fedfuse.runtime.batches import endless_batches
from fedfuse.runtime.source import Source
from fedfuse.runtime.view import ServerView


class PredictionDistillation(Fuse):
    """Train one student per prototype towards the clients' weighted predictions."""

    kind: Literal["prediction_distillation"] = "prediction_distillation"
    needs_weights: ClassVar[bool] = False
    start: Literal["fresh", "previous"] = Field("fresh", description="a new student every round, or last round's")
    distiller: Distiller = Field(default_factory=Distiller)

    def fuse(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> Fused:  # noqa: ARG002
        assert view.source is not None, "checked before round 1"
        assert view.answers is not None, "checked when the recipe was made"
        target = view.answers.clamp_min(1e-12).log().to(view.bank.compute.device)
        batches = endless_batches(len(view.source), self.distiller.batch_size, view.key.child("batches"))
        plan = islice(batches, self.distiller.budget(len(view.source)))
        lessons: list[Lesson] = [partial(_lesson, view.source, target, where) for where in plan]
        weights, report = {}, {}
        for prototype, previous in view.weights.items():
            key = view.key.child(prototype)
            begin = view.bank.initial(prototype, key.child("student")) if self.start == "fresh" else previous
            student = view.bank.lend(prototype, begin)
            school = School(view.source, view.validation, key, view.progress)
            report[prototype] = self.distiller.distil(student, lessons, school).report()
            weights[prototype] = Weights.of(student, begin.layout)
        return Fused(weights, report)

    def ensemble(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> None:  # noqa: ARG002
        """Test inputs are not public, so clients have said nothing about them."""
        return


def _lesson(source: Source, target: Tensor, where: Tensor) -> tuple[Tensor, Tensor]:
    return source.inputs(where), target[where]
