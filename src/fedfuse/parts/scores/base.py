"""How much each client's predictions count, and what clients testify about their own competence for it.

    zT_j = sum_k w_k z_k(x_j)

What a client learns for its testimony comes from its own examples alone, so it is learnt once and stays with the
client; the server asks for the testimony at the first visit and remembers it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor

from fedfuse.core.messages import Tensors, Update
from fedfuse.core.part import Part
from fedfuse.core.randomness import Key
from fedfuse.parts.base import CheckContext
from fedfuse.parts.protocol.base import Party, Shapes
from fedfuse.runtime.source import Source


class Weighting(Part):
    """The client's testimony and what the server makes of it."""

    kind: str

    per_input: ClassVar[bool] = False
    """Whether the testimony has a row for every public input."""
    needs_extractor: ClassVar[bool] = False
    """Whether clients judge by the features of the model that the federation began with."""

    def check(self, context: CheckContext) -> None:
        """Raise a ConfigError with the reason if clients cannot testify in this setting."""

    def scored(self, source: Source, common: Key) -> Source:
        """The public inputs that clients are asked about, the same for all who have the common key."""
        return source

    def learn(self, party: Party) -> Tensors:
        """The client: what it finds out about itself and keeps."""
        return {}

    def testify(self, learnt: Tensors, party: Party, source: Source) -> Tensors:
        """The client: what the server needs to know about these inputs."""
        return {}

    def update_spec(self, inputs: int, classes: int) -> Shapes:
        """Names and shapes of the testimony."""
        return {}

    @abstractmethod
    def weights(self, updates: Sequence[Update]) -> list[Tensor]:
        """One tensor per client that multiplies its n0 x K predictions."""
