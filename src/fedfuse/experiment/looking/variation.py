"""What differs between the configs of several runs, and a short name for each of them that says it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from fedfuse.core.plain_json import dumps
from fedfuse.core.plain_text import one_line
from fedfuse.experiment.config.schema import CHOOSERS
from fedfuse.experiment.stored_config import flat

MOST_KEYS = 3
"""In a name; there are tables for the rest."""
LONGEST = 24
"""Letters of a value in a name."""
LONGEST_SHOWN = 60
"""Letters of a value in a table."""
NAMED = "models"
"""The section whose keys are names that people give."""


def varying(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The addresses of all keys in which some differ, in the order of the files.

    Of parts of different kinds that is the kind, and not every key that one of them has and another has not.
    """
    return list(dict.fromkeys(_varying(configs, "")))


def _varying(values: Sequence[Any], address: str) -> Iterator[str]:
    if not all(isinstance(value, Mapping) for value in values):
        if len({_canonical(value) for value in values}) > 1:
            yield address
        return
    if address == NAMED and len({tuple(value) for value in values}) > 1:
        yield address
        return
    chooser = next((key for key in CHOOSERS if _differ(values, key)), None)
    if chooser is None:
        yield from _inside(values, address)
        return
    yield _join(address, chooser)
    alike = groupby(sorted(values, key=lambda value: _canonical(value.get(chooser))), lambda value: value.get(chooser))
    for _, some in alike:
        yield from _inside(list(some), address)


def _inside(values: Sequence[Mapping[str, Any]], address: str) -> Iterator[str]:
    for key in dict.fromkeys(key for value in values for key in value):
        yield from _varying([value.get(key) for value in values], _join(address, str(key)))


def _differ(values: Sequence[Mapping[str, Any]], key: str) -> bool:
    """What an earlier version did not know is as if it said nothing."""
    return len({_canonical(value.get(key)) for value in values}) > 1


def _canonical(value: Any) -> str:
    return dumps(value)


def _join(address: str, key: str) -> str:
    return f"{address}.{key}" if address else key


def value_at(config: Mapping[str, Any], address: str) -> Any:
    """None where it has no such key."""
    value: Any = config
    for key in address.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def in_words(value: Any, longest: int = LONGEST) -> str:
    """A value as a table shows it."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        chosen = next((value[key] for key in CHOOSERS if isinstance(value.get(key), str)), None)
        value = chosen or ", ".join(map(str, value))
    text = one_line(value if isinstance(value, str) else dumps(value))
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def short_names(addresses: Sequence[str], configs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """For each address the last of its words that no other key of these configs has in common with it."""
    known = {address for config in configs for address, _ in flat(config)} | set(addresses)
    endings = Counter(ending for address in known for ending in _endings(address))
    return {address: _short(address, endings) for address in addresses}


def _endings(address: str) -> Iterator[str]:
    words = _telling(address)
    yield from (".".join(words[place:]) for place in range(len(words)))


def _telling(address: str) -> list[str]:
    """Without ``kind``: what a part is called says which one it is."""
    words = address.split(".")
    return words[:-1] if len(words) > 1 and words[-1] in CHOOSERS else words


def _short(address: str, endings: Mapping[str, int]) -> str:
    candidates = list(_endings(address))[::-1]
    return next((ending for ending in candidates if endings[ending] == 1), candidates[-1])


def names(
    configs: Sequence[Mapping[str, Any]], addresses: Sequence[str], among: Sequence[Mapping[str, Any]]
) -> list[str]:
    """What tells each config from the others at these addresses: ``alpha=0.1, epochs=5``.

    Keys are called as they can be told from any other key of those ``among`` which they are.
    """
    short = short_names(addresses, among)
    found = []
    for config in configs:
        said = [(short[address], value_at(config, address)) for address in addresses]
        words = [f"{name}={in_words(value)}" for name, value in said if value is not None]
        more = f", {len(words) - MOST_KEYS} more" if len(words) > MOST_KEYS else ""
        found.append(", ".join(words[:MOST_KEYS]) + more)
    return found


def by_value(configs: Sequence[Mapping[str, Any]], called: Sequence[str], address: str) -> dict[str, list[str]]:
    """At one address every value, and which configs, by what they are called, have it."""
    found: dict[str, list[str]] = {}
    for config, name in zip(configs, called, strict=True):
        own = found.setdefault(in_words(value_at(config, address), LONGEST_SHOWN), [])
        if name not in own:
            own.append(name)
    return found
