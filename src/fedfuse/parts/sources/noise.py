"""Inputs without any content, drawn once for the whole run or anew for every step of a distillation."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.data import Normalisation, Transform
from fedfuse.parts.sources.base import SourceSettings, Surroundings, make_source, refuse_texts
from fedfuse.runtime.source import Source


class Noise(SourceSettings):
    """What both kinds have in common."""

    size: int = Field(5000, ge=2, description="number of noise inputs")
    fresh: bool = Field(
        False,
        description="new inputs at every step of a distillation, as FedDF's code; size is then the length of an epoch, "
        "and the number of inputs on which BatchNorm statistics are estimated anew",
    )
    normalisation: Literal["experiment", "half", "none"] = Field(
        "experiment",
        description="of pixels: with the constants of the clients' data; half: from -1 to 1, as FedDF's code; none: "
        "from 0 to 1",
    )

    @property
    def is_fresh(self) -> bool:
        return self.fresh

    @abstractmethod
    def numbers(self, shape: tuple[int, ...], random: torch.Generator) -> Tensor:
        """Noise in 0..1."""

    def pixels(self, shape: tuple[int, ...], random: torch.Generator) -> Tensor:
        """The same in bytes."""
        return (255 * self.numbers(shape, random)).round().to(torch.uint8)

    def open(self, surroundings: Surroundings) -> Source:
        refuse_texts(self.kind, surroundings)
        clients = surroundings.clients.inputs
        images = clients.dtype == torch.uint8
        if not images and self.normalisation != "experiment":
            raise ConfigError(
                f"source.normalisation {self.normalisation} is for pixels, but the clients have numbers; remove it"
            )
        draw = Draw(self, surroundings.shape, None if images else (clients.amin(dim=0), clients.amax(dim=0)))
        raw, transform = draw(self.size, surroundings.key), self._transform(surroundings)
        source = make_source(self.kind, raw, transform, surroundings)
        return replace(source, draw=draw) if self.fresh else source

    def _transform(self, surroundings: Surroundings) -> Transform:
        """The experiment's augmentation with the chosen constants."""
        own, shape = surroundings.transform, surroundings.shape
        if self.normalisation == "experiment":
            return own
        return Transform(Normalisation.uniform(self.normalisation, shape[0]), shape, own.crop_padding, own.flip)


@dataclass(frozen=True)
class Draw:
    """Makes noise of the clients' kind: bytes for images, each feature's own ``range`` for numbers."""

    noise: Noise
    shape: tuple[int, ...]
    range: tuple[Tensor, Tensor] | None

    def __call__(self, count: int, key: Key) -> Tensor:
        shape, random = (count, *self.shape), key.torch()
        if self.range is None:
            return self.noise.pixels(shape, random)
        low, high = self.range
        return low + (high - low) * self.noise.numbers(shape, random)


class UniformNoise(Noise):
    """Every pixel uniform over its range (FedDF Fig. 5)."""

    kind: Literal["uniform_noise"] = "uniform_noise"

    def numbers(self, shape: tuple[int, ...], random: torch.Generator) -> Tensor:
        return torch.rand(shape, generator=random)

    def pixels(self, shape: tuple[int, ...], random: torch.Generator) -> Tensor:
        return torch.randint(0, 256, shape, dtype=torch.uint8, generator=random)


class GaussianNoise(Noise):
    """Normal noise, stretched to the full range."""

    kind: Literal["gaussian_noise"] = "gaussian_noise"
    stretched: Literal["each", "together"] = Field(
        "each",
        description="each: every input by its own smallest and largest number; together: by those of all inputs that "
        "are drawn at once, as FedDF's code",
    )

    def numbers(self, shape: tuple[int, ...], random: torch.Generator) -> Tensor:
        noise = torch.randn(shape, generator=random)
        flat = noise.reshape(1 if self.stretched == "together" else shape[0], -1)
        low, high = flat.amin(dim=1, keepdim=True), flat.amax(dim=1, keepdim=True)
        return ((flat - low) / (high - low)).reshape(noise.shape)
