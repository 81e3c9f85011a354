"""What there is to choose from, as tables of plain values; torch is imported only where a method is handed over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedfuse.catalogue import index
from fedfuse.catalogue.datasets import CATALOGUE
from fedfuse.catalogue.index import MethodRow, ModelRow
from fedfuse.catalogue.method_names import offered
from fedfuse.catalogue.places import at_hand
from fedfuse.experiment import presets

if TYPE_CHECKING:
    from fedfuse.methods import Method


@dataclass(frozen=True)
class DatasetRow:
    """A dataset of the catalogue; ``at_hand`` is yes, part or no."""

    title: str
    inputs: str
    classes: int
    at_hand: str
    licence: str


def list_methods() -> dict[str, Method]:
    """All methods that need no address, by name; those of installed packages too, if they can be loaded.

    >>> fedfuse.list_methods()["feddf"].title
    'FedDF'
    """
    from fedfuse.methods import usable_methods

    return usable_methods()[0]


def method_rows() -> tuple[dict[str, MethodRow], list[str]]:
    """The same methods in words, and a sentence about each that another package offers in vain."""
    if not offered():
        return index.own_methods(), []
    from fedfuse.methods import origin_of, usable_methods

    usable, remarks = usable_methods()
    return {name: method_row(method, origin_of(name)) for name, method in usable.items()}, remarks


def method_row(method: Method, origin: str = "") -> MethodRow:
    return MethodRow(
        family=method.family,
        summary=method.summary,
        citation=method.citation,
        exchanges=method.exchanges,
        server_keeps=method.server_keeps,
        client_keeps=method.client_keeps,
        public_inputs="no" if not method.recipe.needs_source else "labelled" if method.recipe.needs_labels else "yes",
        shares_labels=method.shares_labels,
        mixes_architectures=method.mixes_architectures,
        origin=origin,
    )


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
    return index.models()


def list_presets() -> dict[str, str]:
    """What each experiment file inside the package is.

    >>> "digits" in fedfuse.list_presets()
    True
    """
    return {name: presets.description(name) for name in presets.names()}
