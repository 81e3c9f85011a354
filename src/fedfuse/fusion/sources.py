"""Where distillation inputs come from. Labels are never read."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.core.part import Part
from fedfuse.core.randomness import Key
from fedfuse.data import DataSettings, Examples, Transform, load
from fedfuse.runtime.compute import Compute
from fedfuse.runtime.source import Source


@dataclass(frozen=True)
class Surroundings:
    """What a source may need to know of the experiment it serves."""

    public: Examples
    clients: Examples
    transform: Transform
    compute: Compute
    key: Key

    @property
    def shape(self) -> tuple[int, ...]:
        return self.clients.shape


class SourceSettings(Part):
    """The base of all sources."""

    @abstractmethod
    def open(self, surroundings: Surroundings) -> Source:
        """Bring the inputs into memory and check that the models can read them."""


class HeldOut(SourceSettings):
    """The ``public`` share of the training data, kept by the server and stripped of its labels."""

    kind: Literal["held_out"] = "held_out"

    def open(self, surroundings: Surroundings) -> Source:
        if not len(surroundings.public):
            raise ConfigError("source held_out needs data.public above 0: the share of examples kept for distillation")
        return _source("held_out", surroundings.public.inputs, surroundings.transform, surroundings)


class OtherDataset(SourceSettings):
    """Another dataset's training inputs; the number of its classes does not matter."""

    kind: Literal["dataset"] = "dataset"
    data: DataSettings
    limit: int | None = Field(None, ge=1, description="use a seeded random subset of this many inputs")

    def open(self, surroundings: Surroundings) -> Source:
        dataset = load(self.data, surroundings.key.child("load"))
        inputs = dataset.train.inputs
        if self.limit is not None and self.limit < len(inputs):
            inputs = inputs[torch.randperm(len(inputs), generator=surroundings.key.torch())[: self.limit]]
        return _source(dataset.name, inputs, Transform.of(dataset, self.data), surroundings)


class UniformNoise(SourceSettings):
    """Inputs without any content: every pixel uniform over its range, drawn once for the whole run."""

    kind: Literal["uniform_noise"] = "uniform_noise"
    size: int = Field(5000, ge=2, description="number of noise inputs")

    def open(self, surroundings: Surroundings) -> Source:
        shape, generator = (self.size, *surroundings.shape), surroundings.key.torch()
        if surroundings.clients.inputs.dtype == torch.uint8:
            raw = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
        else:
            low, high = surroundings.clients.inputs.amin(dim=0), surroundings.clients.inputs.amax(dim=0)
            raw = low + (high - low) * torch.rand(shape, generator=generator)
        return _source("uniform_noise", raw, surroundings.transform, surroundings)


AnySource = Annotated[HeldOut | OtherDataset | UniformNoise, Field(discriminator="kind")]


def _source(name: str, raw: Tensor, transform: Transform, surroundings: Surroundings) -> Source:
    if tuple(raw.shape[1:]) != surroundings.shape:
        raise ConfigError(
            f"source '{name}' has inputs of shape {_times(raw.shape[1:])}, but the clients' models read "
            f"{_times(surroundings.shape)}; set source.data.resize or source.data.channels, or choose another source"
        )
    if len(raw) < 2:
        raise ConfigError(f"source '{name}' has {len(raw)} input(s); distillation needs at least 2")
    return Source(name, raw, transform, surroundings.compute, _overlap(raw, surroundings.clients.inputs))


def _overlap(raw: Tensor, clients: Tensor) -> int:
    """How many source inputs are exact copies of a client's."""
    if raw.dtype != clients.dtype:
        return 0
    held = {row.tobytes() for row in _rows(clients)}
    return sum(row.tobytes() in held for row in _rows(raw))


def _rows(inputs: Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    return inputs.reshape(len(inputs), -1).numpy()


def _times(shape: tuple[int, ...]) -> str:
    return "x".join(str(n) for n in shape)
