"""What is told about keys and parts without importing them is true of them, and complete."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from fedfuse.catalogue import details
from fedfuse.catalogue.details import KeyRow
from fedfuse.catalogue.index import own_methods
from fedfuse.core.part import Settings
from fedfuse.experiment.config import validate
from fedfuse.experiment.describing import chooser_of, kinds_of
from fedfuse.experiment.details import walked
from fedfuse.experiment.listing import describe_method, list_keys
from fedfuse.methods import METHODS

DOCS = Path(__file__).parent.parent.parent / "docs"
SLOTS = {name: kinds for kinds, name in walked().slots.items()}
PARTS = [(slot, kind, part) for slot, kinds in SLOTS.items() for part in kinds for kind in kinds_of(part)]


def leaves(value: Any, address: str = "") -> dict[str, Any]:
    """The values of everything in a dump that is not a mapping or a list of mappings, by address."""
    if isinstance(value, dict) and value:
        below = (leaves(inner, f"{address}.{key}" if address else key) for key, inner in value.items())
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        below = (leaves(inner, f"{address}[{index}]") for index, inner in enumerate(value))
    else:
        return {address: value}
    return {key: leaf for found in below for key, leaf in found.items()}


def every_key() -> Iterator[tuple[str, KeyRow]]:
    parts = ((f"{slot} {kind}", part.keys) for slot, row in details.slots().items() for kind, part in row.kinds.items())
    for where, keys in chain(details.sections().items(), parts):
        yield from ((f"{where} {name}", key) for name, key in keys.items())


@pytest.mark.parametrize("name", METHODS)
def test_every_leaf_of_a_recipe_is_shown_once_with_its_value(name: str) -> None:
    shown = describe_method(name).keys
    assert {address: value for address, value, _ in shown} == leaves(METHODS[name].recipe.model_dump(mode="json"))
    assert len({address for address, _, _ in shown}) == len(shown)


def test_defaults_of_keys_are_those_of_an_experiment_that_says_nothing() -> None:
    said = {"data": {"name": "digits"}, "models": {"m": {"arch": "mlp"}}}
    whole = leaves(validate(said).model_dump(mode="json"))
    told = {address: key.default for address, key in list_keys().items() if not key.required}
    missing = {address for address in whole if not address.startswith(("data.name", "models.", "method.name"))}
    assert missing == {address for address in told if address != "method.name"}
    assert {address: told[address] for address in missing} == {address: whole[address] for address in missing}


@pytest.mark.parametrize(("slot", "kind", "part"), PARTS, ids=[f"{slot}-{kind}" for slot, kind, _ in PARTS])
def test_a_part_has_the_keys_and_defaults_that_are_told(slot: str, kind: str, part: type[Settings]) -> None:
    told = details.slots()[slot].kinds[kind]
    chooser = chooser_of(part)
    assert set(told.keys) == set(part.model_fields) - {chooser}
    assert told.meaning
    required = {name for name, key in told.keys.items() if key.required}
    assert required == {name for name, field in part.model_fields.items() if field.is_required()} - {chooser}
    if not required and kind not in ("generator", "encoder", "noise", "statistics"):  # which need one of two keys
        values = part(**{chooser: kind}).model_dump(mode="json")
        assert {name: values[name] for name in told.keys} == _defaults(told.keys, values)


def _defaults(keys: Any, values: dict[str, Any]) -> dict[str, Any]:
    """A part may work out a value that nobody gave from others: then it says null."""
    return {name: values[name] if key.default is None else key.default for name, key in keys.items()}


def test_every_key_says_what_it_means_and_what_it_may_be() -> None:
    assert [where for where, key in every_key() if not key.meaning or not key.allowed] == []


def test_ranges_choices_and_lists_are_told_in_words() -> None:
    sections, parts = details.sections(), details.slots()
    assert sections["FederationSettings"]["participation"].allowed == "number above 0 to 1"
    assert sections["Distiller"]["steps"].allowed == "whole number from 0 or null"
    assert sections["FederationSettings"]["checkpoint_every"].allowed == "whole number from 1 or auto"
    assert sections["ExperimentConfig"]["seed"].allowed == "whole number from 0"
    assert sections["DataSettings"]["augment"].allowed == "list of crop or flip"
    assert sections["TrainingSettings"]["schedule"].choices == ("constant", "linear", "cosine")
    assert sections["TrainingSettings"]["shuffle"].choices == ("true", "false")
    assert parts["models"].kinds["mlp"].keys["hidden"].allowed == "list of whole numbers from 1"
    assert parts["models"].kinds["cnn_deep"].keys["channels"].allowed.startswith("list of 2: ")
    assert parts["upload"].several
    assert parts["optimizer"].places[0] == "training.optimizer"
    assert "method.fuse.distiller.optimizer" in parts["optimizer"].places


def test_methods_that_have_a_part_are_named() -> None:
    slots = details.slots()
    assert slots["local"].kinds["proximal"].methods == ("fedprox",)
    assert slots["upload"].kinds["soft_labels"].methods == ("cfd",)
    assert set(slots["teachers"].kinds["gaussian"].methods) == {"fedbe", "fedbe-as-coded"}


def test_every_page_that_is_named_exists() -> None:
    parts = (part.page for slot in details.slots().values() for part in slot.kinds.values())
    pages = {*parts, *(row.page for row in own_methods().values())} - {""}
    assert [page for page in pages if not (DOCS.parent / page.partition("#")[0]).is_file()] == []
    anchored = [page for page in pages if "#" in page]
    for page in anchored:
        file, _, anchor = page.partition("#")
        headings = [
            line.lstrip("# ").lower() for line in (DOCS.parent / file).read_text().splitlines() if line[:1] == "#"
        ]
        assert anchor in {heading.replace(" ", "-") for heading in headings}, page
