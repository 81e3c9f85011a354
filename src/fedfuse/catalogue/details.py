"""Every key of an experiment file and every part that a slot of one takes, as ``make index`` wrote them from the code.

``details.json`` has the sections of an experiment file, the slots with their kinds, and the recipes of our methods, so
that all of it can be shown, completed and checked for misspelt keys without importing any of the code it describes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

EXPERIMENT = "ExperimentConfig"
"""The section that is a whole experiment file."""
CHOOSERS = ("kind", "arch")
"""Keys that say which part the keys beside them are of."""


@dataclass(frozen=True)
class KeyRow:
    """One key of an experiment file: what it may be, what it is if nobody says so, and what it means."""

    meaning: str
    allowed: str
    default: Any = None
    """As an experiment file would have it."""
    required: bool = False
    """Whether there is no default."""
    choices: tuple[str, ...] = ()
    """The words that it may be, if these are all."""
    slot: str = ""
    """The slot whose parts it takes."""
    section: str = ""
    """The section whose keys lie below it."""
    several: bool = False
    """Whether it is a list of these."""


@dataclass(frozen=True)
class PartRow:
    """A part of a method, a partition, an optimiser, a model: whatever a slot takes by its kind."""

    meaning: str
    """In a sentence."""
    text: str
    """The equations, where they are from, and what else there is to say."""
    keys: Mapping[str, KeyRow]
    methods: tuple[str, ...] = ()
    """Our methods that have it in their recipe."""
    page: str = ""
    """Where the documentation says more."""


@dataclass(frozen=True)
class SlotRow:
    """A place in an experiment file that is filled by one of several kinds of parts."""

    meaning: str
    places: tuple[str, ...]
    """The keys that it stands for."""
    chooser: str
    """The key that says which kind it is."""
    several: bool
    kinds: Mapping[str, PartRow] = field(default_factory=dict)
    """Those that have a name; a class of one's own fills the slot by its address."""

    @property
    def place(self) -> str:
        """The first of its keys."""
        return self.places[0]


def sections() -> dict[str, dict[str, KeyRow]]:
    """The keys of every section, by the name of the class that reads it."""
    return _details()[0]


def slots() -> dict[str, SlotRow]:
    """All slots by name, in the order in which an experiment file has them."""
    return _details()[1]


def recipes() -> dict[str, dict[str, Any]]:
    """The recipes of our own methods by name, as the section ``method`` of an experiment file."""
    return _read()["recipes"]  # type: ignore[no-any-return]


def glossary() -> list[tuple[str, str]]:
    """The field's words, and what they are here."""
    return [(word, here) for word, here in _read()["glossary"]]


def own_data() -> tuple[str, ...]:
    """Names of ``data`` that stand for data of one's own."""
    return tuple(_read()["own_data"])


def expanded(
    keys: Mapping[str, KeyRow], values: Mapping[str, Any], at: str = "", known: Mapping[str, SlotRow] | None = None
) -> Iterator[tuple[str, Any, KeyRow]]:
    """All keys at and below a section with their addresses and values; ``values`` go before defaults.

    Where a slot is filled, its own key stands for the kind, and the keys of that kind follow. ``known`` are the slots
    with all parts that may be met, ours if not given.
    """
    for name, key in keys.items():
        value, address = values.get(name, key.default), f"{at}{name}"
        if key.several and isinstance(value, list) and value and isinstance(value[0], dict):
            for number, part in enumerate(value):
                yield from _filled(key, part, f"{address}[{number}]", known or slots())
        else:
            yield from _filled(key, value, address, known or slots())


def _filled(key: KeyRow, value: Any, address: str, known: Mapping[str, SlotRow]) -> Iterator[tuple[str, Any, KeyRow]]:
    if isinstance(value, dict) and key.slot:
        slot = known[key.slot]
        kind = str(value.get(slot.chooser))
        yield f"{address}.{slot.chooser}", kind, key
        if kind in slot.kinds:
            yield from expanded(slot.kinds[kind].keys, value, f"{address}.", known)
    elif isinstance(value, dict) and key.section:
        yield from expanded(sections()[key.section], value, f"{address}.", known)
    else:
        yield address, value, key


def _keys(written: Mapping[str, Mapping[str, Any]]) -> dict[str, KeyRow]:
    return {name: KeyRow(**{**key, "choices": tuple(key.get("choices", ()))}) for name, key in written.items()}


def _part(written: Mapping[str, Any]) -> PartRow:
    methods = tuple(written.get("methods", ()))
    return PartRow(written["meaning"], written["text"], _keys(written["keys"]), methods, written["page"])


def _slot(written: Mapping[str, Any]) -> SlotRow:
    kinds = {kind: _part(part) for kind, part in written["kinds"].items()}
    return SlotRow(written["meaning"], tuple(written["places"]), written["chooser"], written["several"], kinds)


@cache
def _details() -> tuple[dict[str, dict[str, KeyRow]], dict[str, SlotRow]]:
    written = _read()
    return (
        {name: _keys(keys) for name, keys in written["sections"].items()},
        {name: _slot(slot) for name, slot in written["slots"].items()},
    )


@cache
def _read() -> dict[str, Any]:
    return json.loads((files(__package__) / "details.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]
