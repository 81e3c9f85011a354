"""Supervised training on labelled public data, as FedMD begins (Li and Wang, 2019)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from fedfuse.core.weights import Weights
from fedfuse.fusion import Distiller
from fedfuse.fusion.distiller import School
from fedfuse.fusion.true_labels import label_lessons
from fedfuse.runtime.part import Setting
from fedfuse.runtime.view import ServerView
from fedfuse.start.base import Start


class Labelled(Start):
    """Train on the public inputs with their true labels; the labels must be those of the task."""

    kind: Literal["labelled"] = "labelled"
    needs_source: ClassVar[bool] = True
    needs_labels: ClassVar[bool] = True
    distiller: Distiller = Field(
        default_factory=lambda: Distiller(epochs=20, batch_size=128, loss="hard", schedule="constant")
    )

    def check(self, setting: Setting) -> None:
        super().check(setting)
        self.distiller.check(setting, "method.start.distiller")

    def begin(self, view: ServerView, prototype: str) -> Weights:
        assert view.source is not None, "checked before round 1"
        fresh, key = self.fresh(view, prototype), view.key.child("labelled", prototype)
        student = view.bank.lend(prototype, fresh)
        lessons = label_lessons(view.source, self.distiller, view.bank, key)
        self.distiller.distil(student, lessons, School(view.source, view.validation, key, view.progress))
        return Weights.of(student, fresh.layout)
