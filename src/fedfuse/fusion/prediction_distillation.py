"""Distil the clients' own predictions on public inputs: the fusion of FedED.

    zT_j = sum_k w_k z_k(x_j);   student <- argmin sum_j loss( zT_j, f(w, x_j) )

The server never sees a client's weights. Every prototype gets a student, also one that no client runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from fedfuse.core.messages import Update
from fedfuse.core.weights import Weights
from fedfuse.fusion.base import Fuse, Fused, Reads
from fedfuse.fusion.distiller import Distiller, lessons_from, teach
from fedfuse.runtime.view import ServerView


class PredictionDistillation(Fuse):
    """Train one student per prototype towards the clients' weighted predictions."""

    kind: Literal["prediction_distillation"] = "prediction_distillation"
    reads: ClassVar[Reads] = "predictions"
    start: Literal["fresh", "previous"] = Field("fresh", description="a new student every round, or last round's")
    distiller: Distiller = Field(default_factory=Distiller)

    def fuse(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> Fused:  # noqa: ARG002
        assert view.source is not None, "checked before round 1"
        assert view.answers is not None, "checked when the recipe was made"
        target = view.answers.log_probabilities.to(view.bank.compute.device)
        lessons = lessons_from(view.source, target, self.distiller, view.key)
        return teach(view, self.distiller, self._begin(view), lessons)

    def _begin(self, view: ServerView) -> Mapping[str, Weights]:
        if self.start == "previous":
            return view.weights
        return {p: view.bank.initial(p, view.key.child(p, "student")) for p in view.weights}

    def ensemble(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> None:  # noqa: ARG002
        """The server has no client's model to ask."""
        return
