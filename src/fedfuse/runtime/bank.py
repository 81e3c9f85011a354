"""One resident model per prototype and role; weights are swapped in place instead of rebuilding networks.

Weights may be wider or narrower than their architecture's own (matched averaging lets layers grow). They get a resident
of their widths, and the newest one of each prototype and role is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from typing import cast

import torch
from torch import Tensor, nn

from fedfuse.core.randomness import Key
from fedfuse.core.text import TextShape
from fedfuse.core.weights import Layout, Weights
from fedfuse.models import Architecture, Classifier, create
from fedfuse.models.widths import fitted
from fedfuse.runtime.compute import Compute
from fedfuse.runtime.folding import Folded, folded
from fedfuse.runtime.twins import Twins

STUDENT, TEACHER = "student", "teacher"
"""Roles: residents of one prototype that are in use at the same time, such as a student and the teacher it asks."""
RESIDENT = Key(0, ("resident",))


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
        self._resized: dict[tuple[str, str], tuple[Layout, Classifier]] = {}
        self._layouts: dict[str, Layout] = {}
        self._folded: dict[tuple[str, str], tuple[Classifier, Folded | None]] = {}
        self._beside: list[ModelBank] = []

    def __reduce__(self) -> tuple[type[ModelBank], tuple[object, ...]]:
        """Another process gets a bank of the same prototypes, with residents of its own."""
        return ModelBank, (self.architectures, self.input_shape, self.classes, self.compute)

    @property
    def prototypes(self) -> tuple[str, ...]:
        return tuple(self.architectures)

    @cached_property
    def twins(self) -> Twins:
        """The networks that train several clients at a time."""
        create = partial(self._create, key=RESIDENT)
        return Twins(self.compute.device, self.input_shape, create, self._identity)

    def beside(self, place: int) -> ModelBank:
        """A bank for the client in this place of a stack, whose neighbours are lent other weights at the same time."""
        while len(self._beside) <= place:
            other = ModelBank(self.architectures, self.input_shape, self.classes, self.compute)
            other._layouts = self._layouts
            self._beside.append(other)
        return self._beside[place]

    @property
    def reads_texts(self) -> bool:
        return isinstance(self.input_shape, TextShape)

    def initial(self, prototype: str, key: Key) -> Weights:
        """Freshly initialised weights; they depend on the key alone."""
        return Weights.of(self._create(prototype, key))

    def layout(self, prototype: str) -> Layout:
        """That of the architecture's own widths."""
        if prototype not in self._layouts:
            self._layouts[prototype] = Layout.of(self._resident(prototype, STUDENT))
        return self._layouts[prototype]

    def network(self, prototype: str) -> Classifier:
        """The resident network of the architecture's own widths, whatever it holds, to ask about its structure."""
        return self._resident(prototype, STUDENT)

    def lend(self, prototype: str, weights: Weights, role: str = STUDENT) -> Classifier:
        """The resident network holding ``weights``; valid until the same prototype and role is lent again."""
        own = self.layout(prototype)
        if weights.layout is own or weights.layout == own:
            model = self._resident(prototype, role)
        else:
            model = self._resident_of(prototype, role, weights.layout)
        weights.load_into(model)
        return model

    def lend_to_ask(self, prototype: str, weights: Weights, role: str) -> nn.Module:
        """A network that says what ``weights`` say by their running statistics, and is not to be trained.

        With ``compute.fold`` it is a folded copy of the resident one, of which there is one per prototype and role.
        """
        model = self.lend(prototype, weights, role)
        if not self.compute.fold or self.compute.bf16 or self.reads_texts:
            return model
        kept = self._folded.get((prototype, role))
        if kept is None or kept[0] is not model:
            kept = self._folded[prototype, role] = (model, folded(model, self._example()))
        return model if kept[1] is None else kept[1].refreshed()

    def _example(self) -> Tensor:
        return self.compute.inputs(torch.randn(2, *self.input_shape, generator=RESIDENT.torch()))

    def _resident(self, prototype: str, role: str) -> Classifier:
        if (prototype, role) not in self._residents:
            model = self._create(prototype, RESIDENT)
            self._residents[prototype, role] = cast(Classifier, self.compute.place(model))
        return self._residents[prototype, role]

    def _resident_of(self, prototype: str, role: str, layout: Layout) -> Classifier:
        kept = self._resized.get((prototype, role))
        if kept is None or (kept[0] is not layout and kept[0] != layout):
            with torch.inference_mode(False):
                model = fitted(self._create(prototype, RESIDENT), layout)
            kept = self._resized[prototype, role] = (layout, cast(Classifier, self.compute.place(model)))
        return kept[1]

    def _identity(self, prototype: str) -> tuple[str, int] | None:
        """What a network is made of; None where code of the user's own makes it, which may change."""
        architecture = self.architectures[prototype]
        return None if architecture.own_code else (architecture.model_dump_json(), self.classes)

    def _create(self, prototype: str, key: Key) -> Classifier:
        with torch.inference_mode(False):  # a resident outlives the evaluation that may have asked for it first
            return create(self.architectures[prototype], self.input_shape, self.classes, key)
