"""Who teaches: the clients, their average, or models sampled around them (FedBE, Chen and Chao, 2021; SWAG).

A client counts as much as ``scores`` say; an average or a sample as much as the mean of the clients it is made
of, so that making more or fewer samples never changes how those clients compare with each other.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from fedfuse.core.messages import Update
from fedfuse.core.part import Part
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.parts.scores import Coefficient
from fedfuse.parts.teachers.question import Teacher


@dataclass(frozen=True)
class RoundModels:
    """What teachers can be made from: this round's clients and what they were merged into.

    ``coefficients`` has the weight of each client as a teacher, on any scale; without it all count the same.
    """

    updates: Sequence[Update]
    merged: Mapping[str, Weights]
    previous: Mapping[str, Weights]
    key: Key
    coefficients: Mapping[int, Coefficient] = field(default_factory=dict)
    reestimated: Callable[[str, Weights], Weights] | None = None
    """A model with BatchNorm statistics of its own, where there are inputs to estimate them on."""

    def weight(self, update: Update) -> Coefficient:
        return self.coefficients.get(update.client, 1.0)

    def weight_of(self, prototype: str) -> Coefficient:
        """What a model made of a prototype's clients counts: their mean, or everybody's if none of them teaches."""
        own = self.by_prototype().get(prototype) or self.updates
        return sum(self.weight(update) for update in own) / len(own)

    def by_prototype(self) -> dict[str, list[Update]]:
        groups: dict[str, list[Update]] = {}
        for update in self.updates:
            groups.setdefault(update.prototype, []).append(update)
        return groups


class TeacherKind(Part):
    """One kind of teacher."""

    kind: str

    @property
    def compares_widths(self) -> bool:
        """Whether it subtracts the server's weights from the clients'."""
        return False

    @property
    def counts_examples(self) -> bool:
        """Whether it was chosen that clients count in it by how many examples they have."""
        return False

    @property
    def reestimates(self) -> bool:
        """Whether it needs public inputs to estimate BatchNorm statistics on."""
        return False

    def count(self, clients: float) -> float:
        """How many teachers of this kind a prototype with so many clients has."""
        return clients

    @abstractmethod
    def gather(self, models: RoundModels) -> list[Teacher]:
        """The teachers of this kind, in an order that does not depend on when updates came in."""


class SampledTeachers(TeacherKind):
    """Models sampled around the clients of each prototype; they count as the mean of those clients."""

    number: int = Field(10, ge=1, description="samples per prototype (M of FedBE)")
    batch_norm: Literal["average", "reestimate"] = Field(
        "average",
        description="BatchNorm statistics of a sample: the average's, or computed anew on the public inputs, as SWAG "
        "and FedDF's code for it",
    )

    @property
    def reestimates(self) -> bool:
        return self.batch_norm == "reestimate"

    def count(self, clients: float) -> float:
        return self.number

    @abstractmethod
    def samples(self, models: RoundModels, prototype: str, updates: Sequence[Update]) -> Iterator[Weights]:
        """The models sampled around these clients."""

    def gather(self, models: RoundModels) -> list[Teacher]:
        return [
            Teacher(prototype, self._settled(models, prototype, sampled), models.weight_of(prototype))
            for prototype, updates in models.by_prototype().items()
            for sampled in self.samples(models, prototype, updates)
        ]

    def _settled(self, models: RoundModels, prototype: str, sampled: Weights) -> Weights:
        if not self.reestimates or not sampled.layout.buffers:
            return sampled
        assert models.reestimated is not None, "checked before round 1"
        return models.reestimated(prototype, sampled)
