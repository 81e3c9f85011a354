"""One resident model per prototype and role; weights are swapped in place instead of rebuilding networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import torch

from fedfuse.core.randomness import Key
from fedfuse.core.weights import Layout, Weights
from fedfuse.models import Architecture, Classifier, create
from fedfuse.runtime.compute import Compute

STUDENT, TEACHER = "student", "teacher"
"""Roles: residents of one prototype that are in use at the same time, such as a student and the teacher it asks."""


class ModelBank:
    """Builds each prototype's network once per role and lends it with the asked weights loaded."""

    def __init__(
        self,
        architectures: Mapping[str, Architecture],
        input_shape: tuple[int, ...],
        classes: int,
        compute: Compute,
    ) -> None:
        self.architectures = dict(architectures)
        self.input_shape = input_shape
        self.classes = classes
        self.compute = compute
        self._residents: dict[tuple[str, str], Classifier] = {}
        self._layouts: dict[str, Layout] = {}

    @property
    def prototypes(self) -> tuple[str, ...]:
        return tuple(self.architectures)

    def initial(self, prototype: str, key: Key) -> Weights:
        """Freshly initialised weights; they depend on the key alone."""
        return Weights.of(self._create(prototype, key))

    def layout(self, prototype: str) -> Layout:
        if prototype not in self._layouts:
            self._layouts[prototype] = Layout.of(self._resident(prototype, STUDENT))
        return self._layouts[prototype]

    def network(self, prototype: str) -> Classifier:
        """The resident network whatever weights it holds, to ask about its structure."""
        return self._resident(prototype, STUDENT)

    def lend(self, prototype: str, weights: Weights, role: str = STUDENT) -> Classifier:
        """The resident network holding ``weights``; valid until the same prototype and role is lent again."""
        model = self._resident(prototype, role)
        weights.load_into(model)
        return model

    def _resident(self, prototype: str, role: str) -> Classifier:
        if (prototype, role) not in self._residents:
            model = self._create(prototype, Key(0, ("resident",)))
            self._residents[prototype, role] = cast(Classifier, self.compute.place(model))
        return self._residents[prototype, role]

    def _create(self, prototype: str, key: Key) -> Classifier:
        with torch.inference_mode(False):  # a resident outlives the evaluation that may have asked for it first
            return create(self.architectures[prototype], self.input_shape, self.classes, key)
