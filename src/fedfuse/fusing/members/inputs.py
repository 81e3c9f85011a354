"""How a network that brings no preparation of its own is to read raw inputs: constants by name, sizes by its shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from fedfuse.catalogue.card import Normalisation
from fedfuse.catalogue.datasets import CATALOGUE
from fedfuse.core.errors import ConfigError, DataError, unknown
from fedfuse.core.text import TextShape
from fedfuse.data.dataset import InputKind
from fedfuse.data.measure import measure
from fedfuse.data.raw import AnyRawInputs, RawImages, RawNumbers, RawTable, RawTexts
from fedfuse.data.tokens import TextSettings
from fedfuse.data.transform import Transform
from fedfuse.fusing.members.asking import check_kind
from fedfuse.fusing.members.images import fitted
from fedfuse.fusing.raw import Raw, kind_of_raw

Normalise = str | Normalisation | tuple[Sequence[float], Sequence[float]]
"""none, half, imagenet, the name of a dataset, "mean,.../deviation,...", or the two as lists; pixels are 0 to 1."""
Inputs = RawImages | RawNumbers | RawTexts
"""What members can be asked about."""
IMAGENET = Normalisation((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
NOT_SAID = "no normalisation was given, so pixels go in scaled to 0..1; say normalise= where it was trained otherwise"


@dataclass(frozen=True)
class Preparation:
    """For a network of which nothing is known but what the caller says."""

    reads: InputKind
    shape: tuple[int, ...] | None
    """None: inputs go in as large as they are."""
    normalise: Normalise | None
    as_bytes: bool = False
    """Whether pixels go in as uint8, because the network scales them itself."""

    def __call__(self, raw: Raw, name: str) -> Tensor:
        check_kind(raw, self.reads, name)
        if not isinstance(raw, Tensor):
            raise ConfigError(f"{name} reads texts, but brings no tokenizer; give its folder of transformers")
        values = fitted(raw, self.shape, name) if self.reads == "images" and self.shape is not None else raw
        if self.as_bytes or (self.reads == "numbers" and self.normalise is None):
            return values
        constants = normalisation_of(self.normalise or "none", values.shape[1], name)
        return Transform(constants, tuple(values.shape[1:]))(values)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is taken for granted."""
        return (NOT_SAID,) if self.reads == "images" and self.normalise is None and not self.as_bytes else ()


def askable(inputs: AnyRawInputs, name: str) -> Inputs:
    """The same, unless they are rows whose words nobody would turn into numbers here."""
    if isinstance(inputs, RawTable):
        raise DataError(
            f"{name} reads a table with categories, truth values or empty cells, and only tables of numbers can be "
            "fused"
        )
    return inputs


def normalisation_of(normalise: Normalise, channels: int, name: str) -> Normalisation:
    """The constants that are meant, one pair for each channel; ``name`` begins the sentence about others."""
    found = _named(normalise, channels, name) if isinstance(normalise, str) else _given(normalise, name)
    if len(found.mean) == 1 != channels:
        found = Normalisation(found.mean * channels, found.std * channels)
    if len(found.mean) != channels:
        raise ConfigError(f"{name}: normalise has constants for {len(found.mean)} channels, and there are {channels}")
    return found


def inputs_of(raw: Raw, shape: tuple[int, ...], normalise: Normalise | None, name: str) -> Inputs:
    """For a network that learns from these inputs; the constants are measured on them where none are named."""
    kind = kind_of_raw(raw)
    if isinstance(raw, Tensor):
        constants = measure(raw.numpy()) if normalise is None else normalisation_of(normalise, shape[0], name)
        if len(constants.mean) != shape[0]:  # measured on gray images for a network of colours, or the other way
            constants = normalisation_of(_mean_of(constants), shape[0], name)
        return (RawImages if kind == "images" else RawNumbers)(mean=constants.mean, std=constants.std)
    assert isinstance(shape, TextShape), "texts have no other shape"
    return RawTexts(text=TextSettings(max_length=shape.length, vocabulary=shape.vocabulary))


def prepared(inputs: Inputs, shape: tuple[int, ...], raw: Raw, name: str) -> Tensor:
    """Raw inputs as a network of this shape sees them."""
    return inputs.transform(shape)(read(inputs, shape, raw, name))


def read(inputs: Inputs, shape: tuple[int, ...], raw: Raw, name: str) -> Tensor:
    """The step before: images of its size and colours, or token numbers."""
    check_kind(raw, inputs.kind, name)
    if inputs.kind == "images":
        assert isinstance(raw, Tensor), "images are"
        return fitted(raw, shape, name)
    return inputs.read(raw, shape)


def _named(name_or_numbers: str, channels: int, name: str) -> Normalisation:
    if name_or_numbers in ("none", "half"):
        return Normalisation.uniform("none" if name_or_numbers == "none" else "half", channels)
    if name_or_numbers == "imagenet":
        return IMAGENET
    card = CATALOGUE.get(name_or_numbers)
    if card is not None and card.normalisation is not None:
        return card.normalisation
    if "/" in name_or_numbers:
        try:
            mean, std = ([float(number) for number in half.split(",")] for half in name_or_numbers.split("/"))
        except ValueError:
            raise ConfigError(
                f"{name}: normalise '{name_or_numbers[:100]}' should be numbers such as 0.5,0.5,0.5/0.2,0.2,0.2"
            ) from None
        return _given((mean, std), name)
    known = [key for key, value in CATALOGUE.items() if value.normalisation is not None]
    raise ConfigError(f"{name}: {unknown('normalise', name_or_numbers, ['none', 'half', 'imagenet', *known])}")


def _given(pair: Normalisation | tuple[Sequence[float], Sequence[float]], name: str) -> Normalisation:
    try:
        mean, std = (pair.mean, pair.std) if isinstance(pair, Normalisation) else pair
        found = Normalisation(tuple(map(float, mean)), tuple(map(float, std)))
    except (TypeError, ValueError):
        raise ConfigError(f"{name}: normalise should be a list of means and a list of deviations") from None
    numbers = (*found.mean, *found.std)
    if len(found.mean) != len(found.std) or min(found.std, default=0) <= 0 or not all(map(math.isfinite, numbers)):
        raise ConfigError(f"{name}: normalise needs one mean and one deviation above 0 for each channel")
    return found


def _mean_of(constants: Normalisation) -> Normalisation:
    return Normalisation((sum(constants.mean) / len(constants.mean),), (sum(constants.std) / len(constants.std),))
