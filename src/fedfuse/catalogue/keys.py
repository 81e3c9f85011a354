"""Every address that a key of an experiment file can have, whatever parts it is made of, and the one that was meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from fedfuse.catalogue.details import CHOOSERS, EXPERIMENT, KeyRow, sections, slots
from fedfuse.catalogue.other_words import OTHER_WORDS, WORDS_FOR_DATA
from fedfuse.core.errors import listed, shortened, suggest

CLOSE, NEAR = 0.8, 0.6
"""How alike two words are, from 0 to 1: a slip of the finger, and a word that may have been meant."""


@dataclass(frozen=True)
class Place:
    """A key at one address; ``kinds`` are those of the part there that have it, none for a section's own keys."""

    address: str
    key: KeyRow
    kinds: tuple[str, ...] = ()
    defaults: tuple[Any, ...] = ()
    """What it is unless said, for each of the kinds."""

    is_usual: bool = True
    """Whether an experiment has it if nobody chooses another part."""

    @property
    def name(self) -> str:
        return self.address.rpartition(".")[2]

    @property
    def section(self) -> str:
        return self.address.rpartition(".")[0]

    @property
    def chooses(self) -> bool:
        """Whether it says which part stands in its section."""
        return bool(self.key.slot) and self.name in CHOOSERS

    @property
    def asked(self) -> str:
        """The address by which people ask for it: a slot's own, not that of its kind."""
        return self.section if self.chooses else self.address


@cache
def every_place() -> dict[str, Place]:
    """All addresses, those of the parts' keys included; a model's begin with ``models.NAME``."""
    found: dict[str, Place] = {}
    for place in _below(sections()[EXPERIMENT], "", ()):
        former = found.get(place.address)
        if former is None:
            found[place.address] = place
        elif not set(place.kinds) <= set(former.kinds):
            both = (*former.kinds, *place.kinds), (*former.defaults, *place.defaults)
            found[place.address] = Place(place.address, former.key, *both, former.is_usual or place.is_usual)
    return found


def _below(keys: Mapping[str, KeyRow], at: str, kinds: tuple[str, ...], is_usual: bool = True) -> Iterator[Place]:
    for name, key in keys.items():
        address = f"{at}{name}"
        if not key.slot or key.several or address == "models":
            yield Place(address, key, kinds, (key.default,) * len(kinds), is_usual)
        if key.section:
            yield from _below(
                sections()[key.section], f"{address}.", (), is_usual and (key.required or key.default is not None)
            )
        if key.slot:
            slot = slots()[key.slot]
            inside = "models.NAME" if address == "models" else f"{address}[]" if key.several else address
            usual = key.default.get(slot.chooser) if isinstance(key.default, dict) else None
            yield Place(f"{inside}.{slot.chooser}", replace(key, default=usual), is_usual=is_usual)
            for kind, part in slot.kinds.items():
                yield from _below(part.keys, f"{inside}.", (kind,), is_usual and kind == usual)


def find_keys(word: str) -> list[Place]:
    """The keys at and below a section, or those whose name has the word in it."""
    word = OTHER_WORDS.get(word, word)
    asked = re.sub(r"^models\.[^.]+", "models.NAME", _plain(word))
    below = [place for address, place in every_place().items() if f"{_plain(address)}.".startswith(f"{asked}.")]
    named = below or [place for place in every_place().values() if word.lower() in _called(place)]
    key = WORDS_FOR_DATA.get(_written(word))
    return named or ([every_place()[f"data.{key}"]] if key else [])


def _called(place: Place) -> str:
    """The name of a key; one that chooses a part is called after its slot."""
    return _plain(place.asked).rpartition(".")[2]


def suggested(word: str, at: tuple[str, ...], known: Iterable[str]) -> str:
    """What a key that is not there was probably meant to be, as the end of a sentence."""
    known = list(known)
    if word not in known and (kinds := _kinds_that_have(word, at)):
        return f" (it goes with {listed(kinds)})"
    found = meant(word, ".".join(at), known)
    if at and found in sections()[EXPERIMENT] and found not in known:
        return f" ('{found}' stands at the top of the file)"
    return f" (did you mean '{found}'?)" if found else suggest(word, known)


def _kinds_that_have(word: str, at: tuple[str, ...]) -> tuple[str, ...]:
    """The kinds of the part at an address that have a key of this very name; none if all would."""
    place = every_place().get(".".join((*at, word)))
    return place.kinds if place else ()


def meant(word: str, at: str = "", known: Iterable[str] = ()) -> str | None:
    """What was probably meant by a key that is not among the keys ``known`` of section ``at``.

    Another tool's word for a key of ``data`` comes first, then a slip of the finger, then the same word in another
    section, by its address, then whatever is near.
    """
    word, known = shortened(word), list(known)
    if at.rpartition(".")[2] == "data" and (key := WORDS_FOR_DATA.get(_written(word))) in known:
        return key
    for cutoff in (CLOSE, NEAR):
        if near := difflib.get_close_matches(word, known, n=1, cutoff=cutoff):
            return near[0]
        if cutoff == CLOSE and (elsewhere := _elsewhere(word, at)):
            return elsewhere
    names = sorted({place.name for place in every_place().values()})
    near = difflib.get_close_matches(word, names, n=1, cutoff=CLOSE)
    return _elsewhere(near[0], at) if near else None


def _elsewhere(word: str, at: str) -> str | None:
    """The address of a key of this very name: below the section, else one that every experiment has, else the first."""
    name = OTHER_WORDS.get(_written(word), _written(word))
    if name in sections()[EXPERIMENT]:
        return name
    places = [place for place in every_place().values() if _called(place) == name and "[]" not in place.address]
    inside = [place for place in places if at and place.address.startswith(f"{at}.")]
    usual = [place for place in places if place.is_usual]
    best = inside or usual or places
    return min((place.asked for place in best), key=lambda address: address.count("."), default=None)


def _written(word: str) -> str:
    """A word as keys are written."""
    return word.lower().replace("-", "_")


def _plain(address: str) -> str:
    return address.replace("[]", "")
