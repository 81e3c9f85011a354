"""What every kind of raw inputs has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from pydantic import model_validator
from torch import Tensor, nn

from fedfuse.catalogue.card import Normalisation
from fedfuse.core.errors import DataError
from fedfuse.core.part import Settings
from fedfuse.core.text import TextShape
from fedfuse.data.readers.contents import Array
from fedfuse.data.transform import Transform


class RawInputs(Settings, ABC):
    """How raw inputs become numbers; the shape of one input is the network's, and is told each time."""

    @abstractmethod
    def read(self, raw: Any, shape: tuple[int, ...]) -> Tensor:
        """One input or many, as a dataset has them in memory; a DataError says what is wrong with them."""

    @abstractmethod
    def transform(self, shape: tuple[int, ...]) -> Transform:
        """From there to what the network sees."""

    @abstractmethod
    def made_up(self, count: int, shape: tuple[int, ...], random: torch.Generator) -> Tensor:
        """Random inputs as :meth:`read` returns them."""

    def packed(self, count: int, shape: tuple[int, ...], random: torch.Generator) -> Tensor:
        """Random inputs as an exported graph takes them."""
        return self.made_up(count, shape, random)

    def unpacking(self) -> nn.Module:
        """From there to what :meth:`read` returns, in operations that can be exported."""
        return nn.Identity()

    @property
    def about(self) -> dict[str, Any]:
        """What users of an exported graph must know of its inputs."""
        return {}

    @abstractmethod
    def in_words(self, shape: tuple[int, ...]) -> str:
        """What one input is."""

    @abstractmethod
    def check(self, shape: tuple[int, ...]) -> None:
        """A ValueError if inputs of this kind cannot have this shape."""


class Normalised(RawInputs, ABC):
    """Inputs that are shifted and scaled, each channel or column by itself."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    @model_validator(mode="after")
    def _a_pair_of_each(self) -> Normalised:
        if len(self.mean) != len(self.std) or min(self.std, default=0) <= 0:
            raise ValueError("normalisation needs one mean and one deviation above 0 for each channel or column")
        return self

    def transform(self, shape: tuple[int, ...]) -> Transform:
        return Transform(Normalisation(self.mean, self.std), shape)

    def check(self, shape: tuple[int, ...]) -> None:
        if isinstance(shape, TextShape) or len(self.mean) != shape[0]:
            raise ValueError(f"the constants of {len(self.mean)} channels or columns do not fit inputs of {shape}")


def array_of(raw: Any) -> Array:
    """An array, a tensor on whatever device, or nested lists, as an array."""
    if isinstance(raw, Tensor):
        return raw.detach().cpu().numpy()
    try:
        return np.asarray(raw)
    except ValueError:
        raise DataError("the inputs differ in shape; give inputs that are all alike") from None


def sizes(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))
