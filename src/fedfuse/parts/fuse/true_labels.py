"""Training on the public inputs' true labels: what a perfect ensemble would teach (a row of FedBE's Table 2).

A bound to compare with, not a method: it reads labels that the server is taken not to have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import torch.nn.functional as F
from pydantic import Field

from fedfuse.core.messages import Update
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ServerView
from fedfuse.parts.fuse.base import Fused, FusionWork, Reads
from fedfuse.parts.fuse.batches import DistillBatch, batches_from
from fedfuse.parts.fuse.distiller import Distiller, teach
from fedfuse.parts.fuse.students import StudentFuse
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.source import Source


class TrueLabels(StudentFuse):
    """Train one student per prototype on the public inputs and their true labels."""

    kind: Literal["true_labels"] = "true_labels"
    needs_labels: ClassVar[bool] = True
    reads: ClassVar[Reads] = "weights"
    views: Literal["fixed", "student"] = Field(
        "fixed", description="student: a fresh augmentation of its inputs at every step, as FedBE's students have"
    )
    distiller: Distiller = Field(
        default_factory=lambda: Distiller(loss="hard"), description="how the students are trained"
    )

    def check(self, context: CheckContext) -> None:
        super().check(context)
        self.distiller.check(context, "method.fuse.distiller")

    def passes(self, work: FusionWork) -> Mapping[str, float]:
        return self.distiller.passes(work)

    def fuse(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> Fused:
        batches = label_batches(view.public, self.distiller, view.bank, view.key, self.views == "student")
        return teach(view, self.distiller, self.starts(view, merged), batches)

    def ensemble(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> None:
        return None


def label_batches(
    source: Source, distiller: Distiller, bank: ModelBank, key: Key, augmented: bool = False
) -> list[DistillBatch]:
    """Mini-batches of inputs with certainty about their true class."""
    assert source.labels is not None, "checked before round 1"
    target = F.one_hot(source.labels, bank.classes).float().clamp_min(1e-12).log()
    return batches_from(source, target, distiller.plan(source, key), augmented)
