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
from fedfuse.data import Dataset, DataSettings, Examples, Transform, load
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
    classes: int
    reads_labels: bool = False

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
        return _source("held_out", surroundings.public, surroundings.transform, surroundings)


class OtherDataset(SourceSettings):
    """Another dataset's training inputs; the number of its classes does not matter."""

    kind: Literal["dataset"] = "dataset"
    data: DataSettings
    classes: tuple[int, ...] | None = Field(
        None, min_length=1, description="only inputs of these classes (FedDF Fig. 6)"
    )
    fraction: float = Field(1.0, gt=0, le=1, description="a seeded random share of the inputs (FedDF Fig. 6)")
    limit: int | None = Field(None, ge=1, description="at most this many inputs, drawn at random")

    def open(self, surroundings: Surroundings) -> Source:
        dataset = load(self.data, surroundings.key.child("load"))
        examples = dataset.train
        if self.classes is not None:
            _check_classes(self.classes, dataset)
            examples = examples.select(torch.isin(examples.labels, torch.tensor(self.classes)).nonzero().squeeze(1))
        number = min(round(self.fraction * len(examples)), self.limit or len(examples))
        if number < len(examples):
            examples = examples.select(torch.randperm(len(examples), generator=surroundings.key.torch())[:number])
        return _source(dataset.name, examples, Transform.of(dataset, self.data), surroundings)


class UniformNoise(SourceSettings):
    """Inputs without any content: every pixel uniform over its range, drawn once for the whole run."""

    kind: Literal["uniform_noise"] = "uniform_noise"
    size: int = Field(5000, ge=2, description="number of noise inputs")

    def open(self, surroundings: Surroundings) -> Source:
        shape, generator = (self.size, *surroundings.shape), surroundings.key.torch()
        if surroundings.clients.inputs.dtype == torch.uint8:
            raw = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
        else:
            raw = _stretched(torch.rand(shape, generator=generator), surroundings.clients.inputs)
        return _source("uniform_noise", _unlabelled(raw), surroundings.transform, surroundings)


class GaussianNoise(SourceSettings):
    """Inputs without any content: normal noise, each input stretched to its full range, as FedDF's code."""

    kind: Literal["gaussian_noise"] = "gaussian_noise"
    size: int = Field(5000, ge=2, description="number of noise inputs")

    def open(self, surroundings: Surroundings) -> Source:
        noise = torch.randn((self.size, *surroundings.shape), generator=surroundings.key.torch())
        flat = noise.reshape(self.size, -1)
        low, high = flat.amin(dim=1, keepdim=True), flat.amax(dim=1, keepdim=True)
        unit = ((flat - low) / (high - low)).reshape(noise.shape)
        raw = _stretched(unit, surroundings.clients.inputs)
        return _source("gaussian_noise", _unlabelled(raw), surroundings.transform, surroundings)


AnySource = Annotated[HeldOut | OtherDataset | UniformNoise | GaussianNoise, Field(discriminator="kind")]


def _stretched(unit: Tensor, like: Tensor) -> Tensor:
    """Numbers in 0..1 as inputs of the clients' kind: bytes for images, each feature's own range for numbers."""
    if like.dtype == torch.uint8:
        return (255 * unit).round().to(torch.uint8)
    low, high = like.amin(dim=0), like.amax(dim=0)
    return low + (high - low) * unit


def _check_classes(classes: tuple[int, ...], dataset: Dataset) -> None:
    wrong = [label for label in classes if not 0 <= label < dataset.classes]
    if wrong:
        raise ConfigError(f"source.classes names {wrong[0]}, but {dataset.name} has classes 0 to {dataset.classes - 1}")


def _unlabelled(raw: Tensor) -> Examples:
    return Examples(raw, torch.full((len(raw),), -1))


def _source(name: str, examples: Examples, transform: Transform, surroundings: Surroundings) -> Source:
    raw = examples.inputs
    if tuple(raw.shape[1:]) != surroundings.shape:
        raise ConfigError(
            f"source '{name}' has inputs of shape {_times(raw.shape[1:])}, but the clients' models read "
            f"{_times(surroundings.shape)}; set source.data.resize or source.data.channels, or choose another source"
        )
    if len(raw) < 2:
        raise ConfigError(f"source '{name}' has {len(raw)} input(s); distillation needs at least 2")
    labels = _true_labels(name, examples.labels, surroundings.classes) if surroundings.reads_labels else None
    return Source(name, raw, transform, surroundings.compute, _overlap(raw, surroundings.clients.inputs), labels)


def _true_labels(name: str, labels: Tensor, classes: int) -> Tensor:
    if not bool(((labels >= 0) & (labels < classes)).all()):
        raise ConfigError(
            f"this method reads the true labels of the public inputs, but source '{name}' has none of the task's "
            f"{classes} classes; use source held_out"
        )
    return labels


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
