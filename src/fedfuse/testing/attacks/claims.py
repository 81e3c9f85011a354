"""Lies about oneself: examples that a client has not, of every class, and certainty about every input.

What a client says of itself is what its update is weighted by, and nobody can look. With ``sign_flip`` beside it, one
client is enough to turn a mean round.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.messages import Tensors
from fedfuse.federation.attack import Attack, Situation
from fedfuse.parts.scores.certainty import SCORES
from fedfuse.parts.scores.labels import COUNTS
from fedfuse.parts.scores.reconstruction import ERRORS
from fedfuse.parts.tensor_spec import MOST_EXAMPLES


class FalseClaims(Attack):
    """Claim to have, and to know, more than everybody else."""

    kind: Literal["claims"] = "claims"
    count: int = Field(10**9, ge=1, le=MOST_EXAMPLES, description="examples that it claims, and of every class")

    def claimed(self, examples: int) -> int:
        return self.count

    def extras(self, honest: Tensors, situation: Situation) -> Tensors:
        return {name: self._lie(name.rpartition("/")[2], tensor) for name, tensor in honest.items()}

    def _lie(self, name: str, tensor: Tensor) -> Tensor:
        lies = {COUNTS: float(self.count), SCORES: 1.0, ERRORS: 0.0}
        return torch.full_like(tensor, lies[name]) if name in lies else tensor
