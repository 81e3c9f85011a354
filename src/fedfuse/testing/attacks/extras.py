"""Everything that a client sends beside its weights, many times over: control variates, logits by label, ..."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fedfuse.core.messages import Tensors
from fedfuse.federation.attack import Attack, Situation


class FalseExtras(Attack):
    """Multiply what the local objective sends; counts are left alone, which may not be negative."""

    kind: Literal["extras"] = "extras"
    factor: float = Field(-20.0, description="of every number that may have any sign")

    def extras(self, honest: Tensors, situation: Situation) -> Tensors:
        return {
            name: self.factor * tensor if tensor.is_floating_point() and bool((tensor < 0).any()) else tensor
            for name, tensor in honest.items()
        }
