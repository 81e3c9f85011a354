"""All that ``catalogue/details.json`` holds, from the code: an experiment's schema, from its sections to its parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from fedfuse.catalogue.details import KeyRow, PartRow
from fedfuse.core.choice import is_address, part_at
from fedfuse.core.errors import ConfigError
from fedfuse.core.part import Part, Settings
from fedfuse.data.settings import OWN_FILES
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.experiment.describing import (
    Kinds,
    base_in,
    chooser_of,
    is_kind,
    key_row,
    keys_of,
    kinds_in,
    kinds_of,
    part_row,
    section_in,
)
from fedfuse.methods import METHODS, Method
from fedfuse.models import ARCHITECTURES

CLOCK = "clock"
"""The slot of amounts over devices, which several keys of the clock take."""
MEANINGS = {
    "optimizer": "how weights step: those of clients, of students, of first features",
    CLOCK: "an amount for every device: a number, or a distribution of numbers",
}
"""Of slots that stand for several keys, each with a meaning of its own."""
PAGES = {
    "partition": "experiment-file.md#partitions",
    "source": "experiment-file.md#sources",
    "models": "models.md",
    "optimizer": "experiment-file.md",
    "upload": "upload.md",
    "scores": "scores.md",
    "merge": "merges.md",
    "then": "merges.md",
    "nearest_mixing_then": "robustness.md#defences",
    "bucketing_then": "robustness.md#defences",
    "screen": "experiment-file.md#methods-and-combinations",
    "teachers": "methods/fedbe.md",
    "metrics": "metrics.md",
    "engine": "engines.md",
    "attack": "robustness.md#attacks",
    "track": "tracking.md",
    CLOCK: "clock.md",
}
"""The page about all parts of a slot."""
ROBUST = {
    "screen": ("norm_bound", "norm_clip", "krum", "multi_krum"),
    "merge": (
        "median", "trimmed_mean", "geometric_median", "centred_clipping", "bulyan", "fltrust", "nearest_mixing",
        "bucketing",
    ),
}  # fmt: skip
"""Defences, which have a page together."""
PART_PAGES = {
    **{f"{slot}.{kind}": "robustness.md#defences" for slot, kinds in ROBUST.items() for kind in kinds},
    "merge.aligned": "alignment.md",
    "merge.matched": "methods/fedma.md",
    "merge.mean": "methods/fedavg.md",
    "merge.momentum": "methods/fedavgm.md",
    "protocol.votes": "privacy.md#votes-on-public-inputs",
    "source.generator": "generators.md",
    "source.synthesised": "generators.md#no-data-at-all",
    "engine.flower": "flower.md",
    "start.saved": "experiment-file.md",
}
"""Pages about one part."""


@dataclass
class Found:
    """What a walk has met, in its order."""

    sections: dict[str, type[Settings]] = field(default_factory=dict)
    slots: dict[Kinds, str] = field(default_factory=dict)
    """Names by what fills each slot."""
    places: dict[str, list[str]] = field(default_factory=dict)
    """The keys at which each slot stands."""
    first: dict[str, FieldInfo] = field(default_factory=dict)


@cache
def walked() -> Found:
    """Every section and every slot of an experiment file."""
    found = Found()
    _walk(ExperimentConfig, "", found)
    return found


def details() -> dict[str, Any]:
    """What the file should hold."""
    found = walked()
    return {
        "sections": {name: _keys(keys_of(section, found.slots)) for name, section in found.sections.items()},
        "slots": {name: _slot(name, kinds, found) for kinds, name in found.slots.items()},
        "own_data": OWN_FILES,
        "glossary": _glossary(),
        "recipes": {name: method.recipe.model_dump(mode="json") for name, method in METHODS.items()},
    }


def foreign_parts(methods: Iterable[Method]) -> Iterator[tuple[str, str, PartRow]]:
    """The slot, the kind and the description of every part of these methods that is not ours."""
    found = walked()
    for method in methods:
        for slot in type(method.recipe).model_fields:
            filled = getattr(method.recipe, slot)
            for part in filled if isinstance(filled, tuple) else (filled,):
                if isinstance(part, Part) and is_address(kind := getattr(part, part.chooser)):
                    yield slot, kind, part_row(type(part), found.slots)


def foreign_part(slot: str, address: str) -> PartRow:
    """A part of one's own that fits into a slot."""
    found = walked()
    base = base_in(found.first[slot])
    if base is None:
        raise ConfigError(f"{slot} takes no parts but ours")
    try:
        return part_row(part_at(address, base), found.slots)
    except ValueError as error:
        raise ConfigError(f"{slot}: {error}") from None


def _glossary() -> list[tuple[str, str]]:
    """The rows of the page, without its marks; it lies beside the code that this is written from."""
    page = Path(__file__).parents[3] / "docs" / "glossary.md"
    rows = (line.strip("| ").split(" | ") for line in page.read_text(encoding="utf-8").splitlines() if line[:2] == "| ")
    plain = (
        (re.sub(r"[*`]|\]\([^)]*\)", "", word), re.sub(r"[*`\[]|\]\([^)]*\)", "", here)) for word, here, *_ in rows
    )
    return [(word, here) for word, here in plain if word != "word"]


def _walk(settings: type[Settings], at: str, found: Found) -> None:
    if not is_kind(settings):
        found.sections[settings.__name__] = settings
    for key, one in settings.model_fields.items():
        place, kinds, section = f"{at}{key}", kinds_in(one), section_in(one)
        if kinds:
            owner = kinds_of(settings)[0] if is_kind(settings) else ""
            _meet(kinds, _named(key, owner, kinds, found), "models.NAME" if place == "models" else place, one, found)
        elif section is not None:
            _walk(section, f"{place}.", found)


def _named(key: str, owner: str, kinds: Kinds, found: Found) -> str:
    """A slot is called like its key; two parts may have keys of one name that take different parts."""
    is_taken = any(name == key and others != kinds for others, name in found.slots.items())
    return f"{owner}_{key}" if is_taken and owner else key


def _meet(kinds: Kinds, key: str, place: str, one: FieldInfo, found: Found) -> None:
    name = found.slots.setdefault(kinds, CLOCK if ".clock." in place else key)
    found.first.setdefault(name, one)
    places = found.places.setdefault(name, [])
    if place not in places:
        places.append(place)
    for kind in kinds:
        _walk(kind, f"{place}.", found)


def _slot(name: str, kinds: Kinds, found: Found) -> dict[str, Any]:
    described = key_row(found.first[name], found.slots)
    return {
        "meaning": MEANINGS.get(name, described.meaning),
        "places": found.places[name],
        "chooser": chooser_of(kinds[0]),
        "several": described.several,
        "kinds": {kind: _part(name, kind, part, found) for part in kinds for kind in kinds_of(part)},
    }


def _part(slot: str, kind: str, part: type[Settings], found: Found) -> dict[str, Any]:
    users = tuple(name for name, method in METHODS.items() if _has(method.recipe.model_dump(), slot, kind))
    page = PART_PAGES.get(f"{slot}.{kind}") or PAGES.get(slot) or (page_of(users[0]) if users else "")
    row = part_row(part, found.slots)
    meaning = ARCHITECTURES[kind].description if slot == "models" else row.meaning
    return {"meaning": meaning, "text": row.text, "keys": _keys(row.keys), "methods": users, "page": f"docs/{page}"}


def _has(recipe: Any, slot: str, kind: str) -> bool:
    """Whether a part of this kind stands anywhere below a key that is called like its slot."""
    if isinstance(recipe, dict):
        here = recipe.get(slot)
        named = [here] if isinstance(here, dict) else here if isinstance(here, tuple | list) else []
        return any(one.get("kind") == kind for one in named) or any(_has(one, slot, kind) for one in recipe.values())
    return isinstance(recipe, tuple | list) and any(_has(one, slot, kind) for one in recipe)


def page_of(method: str) -> str:
    """The page about a method: its own, that of the method that it is a variant of, or the bounds'."""
    if METHODS[method].family == METHODS["centralised"].family:
        return "methods/bounds.md"
    base = method.removesuffix("-as-coded").removesuffix("-as-printed")
    return f"methods/{'feded' if base.startswith('feded-') else base}.md"


def _keys(rows: Mapping[str, KeyRow]) -> dict[str, dict[str, Any]]:
    """Without what says nothing."""
    return {
        name: {key: value for key, value in asdict(row).items() if value != DULL[key]} for name, row in rows.items()
    }


DULL: dict[str, Any] = {**asdict(KeyRow("", "")), "meaning": None, "allowed": None}
