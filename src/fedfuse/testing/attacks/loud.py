"""A loud teacher: the last layer many times larger, so that its logits drown the others' in a mean of logits."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from fedfuse.core.weights import Weights
from fedfuse.federation.attack import Attack, Situation


class Loud(Attack):
    """Say the same, or the opposite, much louder."""

    kind: Literal["loud"] = "loud"
    bends: ClassVar[str] = "weights"
    factor: float = Field(-50.0, description="of the last layer; negative: what is right gets the smallest logit")

    def weights(self, honest: Weights, situation: Situation) -> Weights:
        parameters = honest.parameters.clone()
        names = [name for name, _ in honest.layout.parameters]
        layer = names[-1].rpartition(".")[0]
        for entry in honest.layout.entries[: len(names)]:
            if entry.name.rpartition(".")[0] == layer:
                parameters[entry.offset : entry.offset + entry.size] *= self.factor
        return honest.with_parameters(parameters)
