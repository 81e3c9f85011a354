"""Inputs without any content, drawn once for the whole run."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.fusion.sources.base import SourceSettings, Surroundings, make_source, refuse_texts
from fedfuse.runtime.source import Source


class UniformNoise(SourceSettings):
    """Every pixel uniform over its range."""

    kind: Literal["uniform_noise"] = "uniform_noise"
    size: int = Field(5000, ge=2, description="number of noise inputs")

    def open(self, surroundings: Surroundings) -> Source:
        refuse_texts(self.kind, surroundings)
        shape, generator = (self.size, *surroundings.shape), surroundings.key.torch()
        if surroundings.clients.inputs.dtype == torch.uint8:
            raw = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
        else:
            raw = _stretched(torch.rand(shape, generator=generator), surroundings.clients.inputs)
        return make_source("uniform_noise", raw, surroundings.transform, surroundings)


class GaussianNoise(SourceSettings):
    """Normal noise, each input stretched to its full range, as FedDF's code."""

    kind: Literal["gaussian_noise"] = "gaussian_noise"
    size: int = Field(5000, ge=2, description="number of noise inputs")

    def open(self, surroundings: Surroundings) -> Source:
        refuse_texts(self.kind, surroundings)
        noise = torch.randn((self.size, *surroundings.shape), generator=surroundings.key.torch())
        flat = noise.reshape(self.size, -1)
        low, high = flat.amin(dim=1, keepdim=True), flat.amax(dim=1, keepdim=True)
        unit = ((flat - low) / (high - low)).reshape(noise.shape)
        raw = _stretched(unit, surroundings.clients.inputs)
        return make_source("gaussian_noise", raw, surroundings.transform, surroundings)


def _stretched(unit: Tensor, like: Tensor) -> Tensor:
    """Numbers in 0..1 as inputs of the clients' kind: bytes for images, each feature's own range for numbers."""
    if like.dtype == torch.uint8:
        return (255 * unit).round().to(torch.uint8)
    low, high = like.amin(dim=0), like.amax(dim=0)
    return low + (high - low) * unit
