"""The merged models."""

from __future__ import annotations

from typing import Literal

from fedfuse.parts.teachers.base import RoundModels, TeacherKind
from fedfuse.parts.teachers.question import Teacher


class AverageTeacher(TeacherKind):
    """The merged model of every prototype (FedAvg in FedBE's Table 2)."""

    kind: Literal["average"] = "average"

    def count(self, clients: float) -> float:
        return 1

    def gather(self, models: RoundModels) -> list[Teacher]:
        return [
            Teacher(prototype, weights, models.weight_of(prototype)) for prototype, weights in models.merged.items()
        ]
