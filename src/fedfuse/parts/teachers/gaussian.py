"""Models sampled from a Gaussian over the clients' (FedBE, Chen and Chao, 2021)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.messages import Update
from fedfuse.core.weights import Weights, mean
from fedfuse.parts.teachers.base import RoundModels, SampledTeachers


class GaussianTeachers(SampledTeachers):
    """Samples from a diagonal Gaussian over the clients' weights (FedBE, equation 5).

        mu = sum_i (|D_i| / |D|) w_i,   Sigma = diag( sum_i (|D_i| / |D|) (w_i - mu)^2 ),   w ~ N(mu, Sigma)

    As coded, each tensor's update direction u_i = (w_i - w) / ||w_i - w|| is averaged and varied instead, with its
    deviation scaled by 0.1, and applied with the clients' mean update length. BatchNorm statistics are not sampled: a
    variance could be negative.
    """

    kind: Literal["gaussian"] = "gaussian"
    form: Literal["as_printed", "as_coded"] = Field(
        "as_printed", description="around the mean of weights (equation 5), or along the clients' updates"
    )
    scale: float | None = Field(None, ge=0, description="factor on the deviation; 1 as printed, 0.1 as coded")

    @property
    def compares_widths(self) -> bool:
        return self.form == "as_coded"

    def samples(self, models: RoundModels, prototype: str, updates: Sequence[Update]) -> Iterator[Weights]:
        centre = mean([u.weights for u in updates], [float(u.examples) for u in updates])
        random = models.key.child("gaussian", prototype).torch()
        for _ in range(self.number):
            if self.form == "as_printed":
                sampled = self._printed(updates, centre, random)
            else:
                sampled = self._coded(updates, models.previous[prototype], random)
            yield centre.with_parameters(sampled)

    def _printed(self, updates: Sequence[Update], centre: Weights, random: torch.Generator) -> Tensor:
        total = sum(u.examples for u in updates)
        spread = sum((u.examples / total) * (u.weights.parameters - centre.parameters) ** 2 for u in updates)
        deviation = torch.as_tensor(spread).sqrt() * (1.0 if self.scale is None else self.scale)
        return centre.parameters + deviation * torch.randn(deviation.shape, generator=random)

    def _coded(self, updates: Sequence[Update], previous: Weights, random: torch.Generator) -> Tensor:
        sampled = []
        for entry in previous.layout.entries[: len(previous.layout.parameters)]:
            moves = torch.stack([(u.weights[entry.name] - previous[entry.name]).reshape(-1) for u in updates])
            lengths = moves.norm(dim=1, keepdim=True)
            directions = moves / lengths.clamp_min(1e-12)
            deviation = directions.var(dim=0, unbiased=False).clamp_min(1e-5).sqrt()
            scale = 0.1 if self.scale is None else self.scale
            direction = directions.mean(dim=0) + scale * deviation * torch.randn(deviation.shape, generator=random)
            sampled.append(previous[entry.name].reshape(-1) + direction * lengths.mean())
        return torch.cat(sampled)
