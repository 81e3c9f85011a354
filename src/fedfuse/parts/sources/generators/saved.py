"""A frozen generator as one safetensors file: the decoder and a card that says what it is; no pickle."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from pydantic import Field, ValidationError
from torch import Tensor

from fedfuse.core.errors import DataError
from fedfuse.core.part import Settings
from fedfuse.core.tensor_files import read_safetensors, write_safetensors
from fedfuse.parts.sources.generators.vae import Decoder, VaeSettings

BATCH = 500
"""Fixed, so that inputs do not depend on how many are asked for at a time."""


class GeneratorCard(Settings):
    """What a generator's file says about it."""

    format: Literal[1] = 1
    network: VaeSettings
    input_shape: tuple[int, ...] = Field(min_length=1)
    input_kind: Literal["images", "features"]
    classes: int = Field(ge=1)
    trained_on: str
    examples: int
    epochs: int
    seed: int

    def decoder(self) -> Decoder:
        """A network of this size, with weights that are still to be loaded or trained."""
        range_shape = () if self.input_kind == "images" else self.input_shape
        low, high = torch.zeros(range_shape), torch.ones(range_shape)
        return Decoder(self.network, self.input_shape, self.classes, low, high)


@dataclass(frozen=True)
class Generator:
    """A frozen generator; calling it follows the contract of a source's ``callable``."""

    card: GeneratorCard
    decoder: Decoder

    @torch.no_grad()
    def __call__(self, count: int, generator: torch.Generator, labels: Tensor | None = None) -> Tensor:
        """``count`` inputs: images in 0..1 or features; classes are uniform unless ``labels`` names one for each."""
        if labels is None:
            labels = torch.randint(self.card.classes, (count,), generator=generator)
        codes = torch.randn(count, self.card.network.latent, generator=generator)
        batches = zip(codes.split(BATCH), labels.split(BATCH), strict=True)
        return torch.cat([self.decoder.imitate(*batch) for batch in batches])


def save_generator(path: str | Path, generator: Generator) -> None:
    """Write the file, whole or not at all."""
    write_safetensors(Path(path), generator.decoder.state_dict(), generator.card.model_dump(mode="json"))


def load_generator(path: str | Path) -> Generator:
    """Read a file of :func:`save_generator`."""
    try:
        tensors, about = read_safetensors(Path(path))
        card = GeneratorCard.model_validate(about)
        decoder = card.decoder()
        decoder.load_state_dict(tensors)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValidationError, ValueError, KeyError, TypeError, RuntimeError):
        raise DataError(f"{path} is not a generator that fedfuse trained; make one: fedfuse generator train") from None
    return Generator(card, decoder.eval().requires_grad_(False))
