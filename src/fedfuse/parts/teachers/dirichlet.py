"""Models sampled between the clients' (FedBE, Chen and Chao, 2021)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from fedfuse.core.messages import Update
from fedfuse.core.weights import Weights, mean
from fedfuse.parts.teachers.base import RoundModels, SampledTeachers


class DirichletTeachers(SampledTeachers):
    """Samples from the simplex spanned by the clients (FedBE, equation 7).

    gamma ~ Dir(alpha),   w = sum_i gamma_i |D_i| w_i / sum_i gamma_i |D_i|
    """

    kind: Literal["dirichlet"] = "dirichlet"
    alpha: float = Field(1.0, gt=0, description="small: near single clients; large: near their mean")
    by_examples: bool = Field(True, description="weigh clients by |D_i| as printed; the released code does not")

    @property
    def counts_examples(self) -> bool:
        return self.by_examples

    def samples(self, models: RoundModels, prototype: str, updates: Sequence[Update]) -> Iterator[Weights]:
        random = models.key.child("dirichlet", prototype).numpy()
        sizes = np.array([u.examples if self.by_examples else 1 for u in updates], dtype=float)
        for gamma in random.dirichlet([self.alpha] * len(updates), size=self.number):
            yield mean([u.weights for u in updates], (gamma * sizes).tolist())
