"""What there is to choose from, as tables of plain values."""

from __future__ import annotations

from dataclasses import dataclass

from fedfuse.data import CATALOGUE
from fedfuse.data.lookup import at_hand
from fedfuse.experiment import presets
from fedfuse.methods import Method, usable_methods
from fedfuse.models import ARCHITECTURES, Listed, layout_of

CLASSES = 10


@dataclass(frozen=True)
class DatasetRow:
    """A dataset of the catalogue; ``at_hand`` is yes, part or no."""

    title: str
    inputs: str
    classes: int
    at_hand: str
    licence: str


@dataclass(frozen=True)
class ModelRow:
    """An architecture; its sizes are for 10 classes and its defaults, None where it has none."""

    description: str
    parameters: int | None
    statistics: int | None
    """Of BatchNorm, which travel too."""


def list_methods() -> dict[str, Method]:
    """All methods that need no address, by name; those of installed packages too, if they can be loaded.

    >>> fedfuse.list_methods()["feddf"].title
    'FedDF'
    """
    return usable_methods()[0]


def list_datasets() -> dict[str, DatasetRow]:
    """All datasets that are known by name.

    >>> fedfuse.list_datasets()["digits"].inputs
    '1x8x8'
    """
    return {
        name: DatasetRow(card.title, card.inputs, card.classes, at_hand(card), card.licence)
        for name, card in CATALOGUE.items()
    }


def list_models() -> dict[str, ModelRow]:
    """All architectures, for 3x32x32 inputs or texts of 64 tokens.

    >>> fedfuse.list_models()["resnet8"].parameters
    78042
    """
    return {name: _model_row(name, listed) for name, listed in ARCHITECTURES.items()}


def list_presets() -> dict[str, str]:
    """What each experiment file inside the package is.

    >>> "digits" in fedfuse.list_presets()
    True
    """
    return {name: presets.description(name) for name in presets.names()}


def _model_row(name: str, listed: Listed) -> ModelRow:
    if not listed.has_defaults:
        return ModelRow(listed.description, None, None)
    layout = layout_of(listed.config(arch=name), listed.shape, CLASSES)
    return ModelRow(listed.description, layout.parameter_count, layout.size - layout.parameter_count)
