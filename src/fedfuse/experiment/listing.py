"""What there is to choose from, as plain values; torch is imported only for what other packages offer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fedfuse.catalogue import details, index
from fedfuse.catalogue.datasets import CATALOGUE
from fedfuse.catalogue.details import KeyRow, PartRow, SlotRow
from fedfuse.catalogue.index import MethodRow, ModelRow
from fedfuse.catalogue.method_names import check_name, offered
from fedfuse.catalogue.places import at_hand
from fedfuse.core.errors import ConfigError, unknown
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
        title=method.title,
        family=method.family,
        brief=method.brief or method.summary,
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


@dataclass(frozen=True)
class MethodDetails:
    """A method with every key of its recipe; ``keys`` are below ``method`` in an experiment file."""

    row: MethodRow
    recipe: dict[str, Any]
    slots: Mapping[str, SlotRow]
    """With the parts that only this method has."""

    @property
    def keys(self) -> list[tuple[str, Any, KeyRow]]:
        """Addresses, values and meanings."""
        own = {name: key for name, key in details.sections()["MethodSettings"].items() if name in self.recipe}
        return list(details.expanded(own, self.recipe, known=self.slots))


def describe_method(name: str) -> MethodDetails:
    """What there is to know about a method, by its name or address."""
    check_name(name)
    if name in index.own_methods():
        return MethodDetails(index.own_methods()[name], details.recipes()[name], details.slots())
    from fedfuse.methods import find_method, origin_of

    method = find_method(name)
    row = method_row(method, origin_of(name))
    return MethodDetails(row, method.recipe.model_dump(mode="json"), _with_foreign([method]))


def list_parts() -> dict[str, SlotRow]:
    """Every slot of an experiment file with every kind that fills it, and what methods of installed packages bring.

    >>> fedfuse.list_parts()["merge"].kinds["ties"].keys["density"].default
    0.2
    """
    return dict(_with_foreign(list_methods().values()) if offered() else details.slots())


def find_slot(name: str) -> tuple[str, SlotRow]:
    """A slot by its name, by a key that it stands for, or by its name in the plural."""
    known = list_parts()
    for slot, row in known.items():
        if name in (slot, f"{slot}s", slot.removesuffix("s"), *row.places):
            return slot, row
    raise ConfigError(unknown("slot", name, known))


def find_part(slot: str, kind: str) -> PartRow:
    """A part by its kind, or by its address if it is nobody's but yours."""
    name, row = find_slot(slot)
    if kind in row.kinds:
        return row.kinds[kind]
    if ":" not in kind:
        raise ConfigError(f"{name}: {unknown(row.chooser, kind, row.kinds)}")
    from fedfuse.experiment.details import foreign_part

    return foreign_part(name, kind)


def list_keys() -> dict[str, KeyRow]:
    """Every key of an experiment file, with the parts that it has if nobody says otherwise.

    >>> fedfuse.list_keys()["federation.rounds"].default
    10
    """
    values = {"data": {}, "method": {"name": "fedavg", **details.recipes()["fedavg"]}}
    return {
        address: replace(key, default=value, required=key.required and value is None)
        for address, value, key in details.expanded(details.sections()[details.EXPERIMENT], values)
    }


def _with_foreign(methods: Iterable[Method]) -> Mapping[str, SlotRow]:
    """Our slots and the parts from elsewhere that these methods are made of."""
    from fedfuse.experiment.details import foreign_parts

    found = dict(details.slots())
    for slot, kind, part in foreign_parts(methods):
        found[slot] = replace(found[slot], kinds={**found[slot].kinds, kind: part})
    return found


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
