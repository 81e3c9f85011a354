"""Keys and parts of experiment files, printed: what each is called, what it is unless said, and what it means."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedfuse.catalogue.details import CHOOSERS, KeyRow, PartRow, SlotRow
from fedfuse.catalogue.keys import Place
from fedfuse.cli.columns import in_columns, wrapped

NAMED = 12
"""So many kinds of a slot are named in a line; more are counted."""


def value_text(value: Any, key: KeyRow | None = None) -> str:
    """A value as an experiment file has it."""
    if value is None and key is not None and key.required:
        return "(required)"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {value_text(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(value_text, value)) + "]"
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) and value else json.dumps(value)


@dataclass(frozen=True)
class Shown:
    """A key as it is shown: below the heading of its section, with a value."""

    section: str
    name: str
    value: str
    key: KeyRow

    @property
    def is_kind(self) -> bool:
        """Whether it says which part the other keys of its section are of."""
        return self.name in CHOOSERS and bool(self.key.slot)

    @staticmethod
    def at(address: str, value: Any, key: KeyRow, top: str = "") -> Shown:
        """``top`` is the section that the address is in."""
        section, _, name = address.rpartition(".")
        return Shown(".".join(filter(None, (top, section))), name, value_text(value, key), key)

    @staticmethod
    def of(place: Place) -> Shown:
        """With the kinds that have the key, and each one's default where they differ."""
        section = f"{place.section} ({', '.join(place.kinds)})" if place.kinds else place.section
        values = [value_text(value, place.key) for value in place.defaults or (place.key.default,)]
        several = ", ".join(f"{kind} {value}" for kind, value in zip(place.kinds, values, strict=False))
        return Shown(section, place.name, several if len(set(values)) > 1 else values[0], place.key)


def grouped(shown: Iterable[Shown], slots: Mapping[str, SlotRow], width: int) -> Iterator[str]:
    """Keys by section, a heading each; those that are in none first."""
    sections: dict[str, list[Shown]] = {}
    for one in sorted(shown, key=lambda one: one.section != ""):
        sections.setdefault(one.section, []).append(one)
    for number, (section, members) in enumerate(sections.items()):
        yield from ([""] if number else [])
        yield from wrapped(section, width)
        indent = "  " if section else ""
        for of_kind in (True, False):  # the kind apart: its name may be longer than any value
            rows = [_row(one.name, one.value, one.key, slots) for one in members if one.is_kind == of_kind]
            yield from in_columns(rows, width, wrapping=(1, 2), indent=indent)


def key_lines(keys: Mapping[str, KeyRow], slots: Mapping[str, SlotRow], width: int, indent: str = "") -> list[str]:
    """The keys of a part."""
    rows = [_row(name, value_text(key.default, key), key, slots) for name, key in keys.items()]
    return in_columns(rows, width, wrapping=(1, 2), indent=indent)


def part_lines(
    slot: str, row: SlotRow, kind: str, part: PartRow, slots: Mapping[str, SlotRow], width: int
) -> Iterator[str]:
    """All there is to know about one part."""
    yield from wrapped(f"{slot} {kind}: {part.meaning}", width)
    if part.text:
        yield ""
        yield from (f"  {line}".rstrip() for line in _reflowed(part.text, width - 2))
    else:
        yield ""
    yield from in_columns(list(_facts(row, kind, part)), width, indent="  ")
    if part.keys:
        yield ""
        yield from key_lines(part.keys, slots, width, indent="  ")


def kinds_text(slot: str, row: SlotRow) -> str:
    """Which kinds a slot takes, and where to read about them."""
    named = ", ".join(list(row.kinds)[:NAMED]) + (", ..." if len(row.kinds) > NAMED else "")
    return f"{'list of ' if row.several else ''}{named}; fedfuse parts {slot}"


def _facts(row: SlotRow, kind: str, part: PartRow) -> Iterator[Sequence[str]]:
    one = f"{{{row.chooser}: {kind}}}"
    yield "write", f"{row.place}: {f'[{one}]' if row.several else one}"
    if len(row.places) > 1:
        yield "also", ", ".join(row.places[1:])
    if part.methods:
        yield "methods", ", ".join(part.methods)
    if part.page:
        yield "page", part.page


def _row(name: str, value: str, key: KeyRow, slots: Mapping[str, SlotRow]) -> tuple[str, str, str]:
    if not key.slot:
        return name, value, f"{key.meaning} [{key.allowed}]"
    row = slots[key.slot]
    meaning = row.kinds[value].meaning if value in row.kinds else key.meaning
    return name, value, f"{meaning} [{kinds_text(key.slot, row)}]"


def _hanging(equation: str, width: int) -> list[str]:
    """A line as it is if there is room, else over several, all but the first further in."""
    if len(equation) <= width:
        return [equation]
    indent = " " * (len(equation) - len(equation.lstrip()))
    first, *rest = wrapped(equation.strip(), width - 4, indent)
    return [first, *(f"    {line}" for line in rest)]


def _reflowed(text: str, width: int) -> Iterator[str]:
    """Paragraphs as wide as the terminal; equations, which are indented, as they are."""
    for block in text.split("\n\n"):
        if block.startswith(" "):
            yield from (line for equation in block.split("\n") for line in _hanging(equation, width))
        else:
            yield from wrapped(" ".join(block.split()), width)
        yield ""
