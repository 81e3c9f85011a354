"""Models sampled by SWAG around the clients'."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.messages import Update
from fedfuse.core.weights import Weights, mean
from fedfuse.parts.teachers.base import RoundModels, SampledTeachers


class SwagTeachers(SampledTeachers):
    """Samples from a Gaussian with diagonal and low-rank covariance over the clients' weights.

    SWAG (Maddox et al., A Simple Baseline for Bayesian Uncertainty in Deep Learning, NeurIPS 2019) with clients in the
    place of the iterates of SGD; FedDF's Table 7 teaches with it. m clients, all counting the same:

        mu = (1/m) sum_i w_i,   diag = (1/m) sum_i (w_i - mu)^2,   D = [w_i - mu], K = min(rank, m) columns
        w = mu + (1/sqrt 2) diag^(1/2) eps_1 + (1/sqrt(2 (K - 1))) D eps_2,   eps_1, eps_2 ~ N(0, I)

    SWAG keeps the latest K iterates in D; clients have no order, so K of them are drawn.
    """

    kind: Literal["swag"] = "swag"
    rank: int = Field(20, ge=2, description="most clients in the low-rank part (K of the paper)")
    scale: float = Field(1.0, ge=0, description="factor on the deviation from the mean; 1 is SWAG")

    def samples(self, models: RoundModels, prototype: str, updates: Sequence[Update]) -> Iterator[Weights]:
        centre = mean([u.weights for u in updates], [1.0] * len(updates))
        random = models.key.child("swag", prototype).torch()
        deviations = torch.stack([u.weights.parameters - centre.parameters for u in updates])
        diagonal = deviations.square().mean(dim=0).sqrt()
        low_rank = deviations[torch.randperm(len(updates), generator=random)[: self.rank]]
        for _ in range(self.number):
            yield centre.with_parameters(centre.parameters + self.scale * _swag_deviation(diagonal, low_rank, random))


def _swag_deviation(diagonal: Tensor, low_rank: Tensor, random: torch.Generator) -> Tensor:
    columns = len(low_rank)
    independent = diagonal * torch.randn(diagonal.shape, generator=random) / math.sqrt(2)
    if columns < 2:
        return independent  # one client does not deviate from itself
    return independent + torch.randn(columns, generator=random) @ low_rank / math.sqrt(2 * (columns - 1))
