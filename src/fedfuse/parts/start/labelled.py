"""Supervised training on labelled public data, as FedMD begins (Li and Wang, 2019)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from fedfuse.core.weights import Weights
from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ServerView
from fedfuse.parts.fuse import Distiller
from fedfuse.parts.fuse.distiller import DistillContext
from fedfuse.parts.fuse.true_labels import label_batches
from fedfuse.parts.start.base import Start


class Labelled(Start):
    """Train on the public inputs with their true labels; the labels must be those of the task."""

    kind: Literal["labelled"] = "labelled"
    needs_source: ClassVar[bool] = True
    needs_labels: ClassVar[bool] = True
    distiller: Distiller = Field(
        default_factory=lambda: Distiller(epochs=20, batch_size=128, loss="hard", schedule="constant"),
        description="how the models are trained",
    )

    def check(self, context: CheckContext) -> None:
        super().check(context)
        self.distiller.check(context, "method.start.distiller")

    def begin(self, view: ServerView, prototype: str) -> Weights:
        fresh, key = self.fresh(view, prototype), view.key.child("labelled", prototype)
        student = view.bank.lend(prototype, fresh)
        batches = label_batches(view.public, self.distiller, view.bank, key)
        self.distiller.distil(student, batches, DistillContext(view.public, view.validation, key, view.progress))
        return Weights.of(student, fresh.layout)
