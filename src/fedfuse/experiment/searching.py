"""Whatever has to do with a word: methods, parts, keys, models, data, and the field's own terms."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fedfuse.catalogue import details, index
from fedfuse.catalogue.datasets import CATALOGUE
from fedfuse.catalogue.keys import every_place
from fedfuse.catalogue.other_words import OTHER_WORDS
from fedfuse.experiment import presets


@dataclass(frozen=True)
class Match:
    """Something that was found: what it is called, what it is, and the command that says more, if one does."""

    name: str
    text: str
    command: str = ""
    also: str = ""
    """Other words that it is found by, too."""

    def rank(self, words: Sequence[Sequence[str]]) -> int | None:
        """How well it fits, best is least; None if a word is nowhere in it. Each word may have others that mean it."""
        name = self.name.lower()
        parts = re.split(r"[ .,]+", name)
        places = ([name], [parts[-1]], parts, [name], [f"{name} {self.also} {self.text}".lower()])
        fits = (str.__eq__, str.__eq__, str.__eq__, str.__contains__, str.__contains__)
        for rank, (several, fit) in enumerate(zip(places, fits, strict=True)):
            if all(any(fit(place, word) for place in several for word in same) for same in words):
                return rank
        return None


def search(*words: str) -> list[Match]:
    """All that fits, the best first; a name before what is said about it.

    >>> fedfuse.search("lr")[0].command
    'fedfuse keys training.optimizer.learning_rate'
    """
    wanted = [tuple({word.lower(), OTHER_WORDS.get(word.lower(), word.lower())}) for word in words]
    ranked = [(rank, match) for match in everything() if (rank := match.rank(wanted)) is not None]
    return [match for _, match in sorted(ranked, key=lambda pair: pair[0])]


def everything() -> Iterator[Match]:
    """All that can be found, in the order of interest."""
    for name, row in index.own_methods().items():
        yield Match(name, row.summary, f"fedfuse methods {name}", f"{row.title} {row.citation}")
    for slot, place in details.slots().items():
        yield Match(slot, place.meaning, f"fedfuse parts {slot}", " ".join(place.places))
        if slot != "models":
            for kind, part in place.kinds.items():
                yield Match(f"{slot} {kind}", part.meaning, f"fedfuse parts {slot} {kind}", part.text)
    for address, key in every_place().items():
        if not key.chooses and not key.key.section:
            yield Match(address, key.key.meaning, f"fedfuse keys {address.replace('[]', '')}")
    for name, model in index.models().items():
        yield Match(name, model.description, f"fedfuse models {name}")
    for name, card in CATALOGUE.items():
        yield Match(name, card.title, f"fedfuse datasets {name}")
    for name in presets.names():
        yield Match(name, presets.description(name), f"fedfuse presets {name}")
    for term, meaning in details.glossary():
        yield Match(term, meaning)
