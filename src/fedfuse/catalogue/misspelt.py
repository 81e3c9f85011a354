"""Misspelt keys, kinds and words of an experiment, found before anything that reads it is imported.

Only what is surely wrong is refused here, in the very sentence that it would get later; all else is left to the schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fedfuse.catalogue.datasets import CATALOGUE
from fedfuse.catalogue.details import EXPERIMENT, KeyRow, SlotRow, own_data, recipes, sections, slots
from fedfuse.catalogue.keys import suggested
from fedfuse.catalogue.method_names import method_names
from fedfuse.core.errors import ConfigError, UnknownKeyError, shortened, suggest, unknown

IN_MEMORY = ("arrays", "tables")
"""Data that Python hands over."""
OLDER = ("exchange", "weighting")
"""Keys of a method that are read though they have other names now."""
METHOD = "MethodSettings"
Problems = Iterator[ConfigError]


def misspellings(raw: Mapping[str, Any], where: str) -> Problems:
    """All that is surely misspelt in an experiment; ``where`` says whose."""
    known = sections()[EXPERIMENT]
    for name in raw:
        if name not in known:
            yield ConfigError(f"{where}: unknown key '{shortened(str(name))}'{suggested(str(name), (), known)}")
    for name, key in known.items():
        if name == "method" and name in raw:
            yield from _method(raw[name], where)
        elif name == "models" and isinstance(raw.get(name), Mapping):
            for model, given in raw[name].items():
                yield from _part(given, slots()["models"], None, (name, str(model)), where)
        elif name in raw:
            yield from _value(raw[name], key, (name,), where)


def misfit(what: str, errors: Sequence[UnknownKeyError]) -> UnknownKeyError:
    """The sentence for a key that nobody has, with the nearest that somebody has."""
    nearest = max(errors, key=lambda error: len(error.at))
    known = {key for error in errors if error.at == nearest.at for key in error.known}
    return UnknownKeyError(nearest.key, known, nearest.at, f"{what}: ", suggested(nearest.key, nearest.at, known))


def _method(given: Any, where: str) -> Problems:
    method = {"name": given} if isinstance(given, str) else given
    if not isinstance(method, Mapping):
        return
    name = method.get("name", "fedavg")
    if not isinstance(name, str) or ":" in name:
        return
    if name not in method_names():
        yield ConfigError(f"{where}: {unknown('method', name, method_names())}")
    if name in recipes() and "exchange" not in method:
        yield from _section(method, sections()[METHOD], recipes()[name], ("method",), where)


def _section(
    given: Mapping[str, Any], known: Mapping[str, KeyRow], base: Mapping[str, Any], at: tuple[str, ...], where: str
) -> Problems:
    """``base`` is what stands there unless something is said."""
    for name, value in given.items():
        if name in known:
            yield from _value(value, known[name], (*at, name), where, base.get(name))
        elif name not in OLDER:
            yield UnknownKeyError(str(name), known, at, f"{where}: ", suggested(str(name), at, known))


def _value(given: Any, key: KeyRow, at: tuple[str, ...], where: str, base: Any = None) -> Problems:
    base = key.default if base is None else base
    if at == ("data", "name") and isinstance(given, str) and given not in (*CATALOGUE, *own_data(), *IN_MEMORY):
        if not given.startswith("hf:"):
            yield ConfigError(
                f"{where}: data.name: {unknown('dataset', given, [*CATALOGUE, *own_data(), 'hf:<name>'])}"
            )
    elif key.slot and key.several:
        for number, part in enumerate(given if isinstance(given, list) else ()):
            yield from _part(part, slots()[key.slot], None, (*at, str(number)), where)
    elif key.slot:
        yield from _part(given, slots()[key.slot], base, at, where)
    elif key.section and isinstance(given, Mapping):
        yield from _section(given, sections()[key.section], base if isinstance(base, dict) else {}, at, where)
    elif (
        key.choices and isinstance(given, str) and given not in key.choices and not set(key.choices) & {"true", "null"}
    ):
        words = [f"'{choice}'" for choice in key.choices]
        wanted = " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
        yield ConfigError(f"{where}: {'.'.join(at)} is {shortened(repr(given), 60)}, but should be {wanted}")


def _part(given: Any, slot: SlotRow, base: Any, at: tuple[str, ...], where: str) -> Problems:
    if not isinstance(given, Mapping):
        return
    usual = base.get(slot.chooser) if isinstance(base, dict) else None
    kind = given.get(slot.chooser, usual)
    if not isinstance(kind, str) or ":" in kind:
        return
    if kind not in slot.kinds:
        tag = f"unknown {slot.chooser} '{shortened(kind)}'{suggest(kind, slot.kinds)}"
        yield ConfigError(f"{where}: {'.'.join(at)}: {tag}")
        return
    own = {name: value for name, value in given.items() if name != slot.chooser}
    same = base if isinstance(base, dict) and kind == usual else {}
    known = slot.kinds[kind].keys
    for name, value in own.items():
        if name in known:
            yield from _value(value, known[name], (*at, name), where, same.get(name))
        elif name not in OLDER:
            everything = {slot.chooser: None, **known}
            yield UnknownKeyError(str(name), everything, at, f"{where}: ", suggested(str(name), at, everything))
