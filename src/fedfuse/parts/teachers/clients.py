"""The clients' own models."""

from __future__ import annotations

from typing import Literal

from fedfuse.parts.teachers.base import RoundModels, TeacherKind
from fedfuse.parts.teachers.question import Teacher


class ClientTeachers(TeacherKind):
    """The clients' own models (C of FedBE's Table 2); alone, FedDF's ensemble."""

    kind: Literal["clients"] = "clients"

    def gather(self, models: RoundModels) -> list[Teacher]:
        return [Teacher(update.prototype, update.weights, models.weight(update)) for update in models.updates]
