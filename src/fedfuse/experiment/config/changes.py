"""Changes on top of an experiment file: assignments of a command line, keyword arguments of Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

from fedfuse.core.errors import ConfigError, shortened
from fedfuse.core.foreign import findable
from fedfuse.core.part import Part, Settings
from fedfuse.core.text import is_utf8
from fedfuse.core.yaml_text import DEEPEST, load_yaml
from fedfuse.data.settings import irrelevant
from fedfuse.experiment.config.error_messages import in_short
from fedfuse.experiment.config.python_values import in_words
from fedfuse.experiment.config.schema import Raw, as_mapping
from fedfuse.methods import Method

Address = tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """One key with its new value; ``said`` is how the user put it."""

    said: str
    address: Address
    value: Any

    @staticmethod
    def read(assignment: str) -> Change:
        """An assignment such as ``training.epochs=2``; the value is YAML."""
        said = f"--set {shortened(assignment if is_utf8(assignment) else ascii(assignment))}"
        address, equals, text = assignment.partition("=")
        if not equals or not address:
            raise ConfigError(f"{said}: write key=value, for example federation.rounds=20")
        return Change.of(said, address_of(said, address), load_yaml(text, f"{said}: the value"))

    @staticmethod
    def of(said: str, address: Address, value: Any) -> Change:
        """``method=feddf`` is short for ``method.name=feddf``."""
        names_a_method = address == ("method",) and isinstance(value, str)
        return Change(said, ("method", "name") if names_a_method else address, value)

    @property
    def is_choice(self) -> bool:
        """Whether it says what the keys beside it mean."""
        return len(self.address) > 1 and (self.address[-1] in ("kind", "arch") or self.address == ("method", "name"))


def address_of(said: str, key: str) -> Address:
    """The keys of a key such as ``training.epochs``."""
    keys = tuple(key.split("."))
    if len(keys) > DEEPEST:
        raise ConfigError(f"{said}: nothing lies more than {DEEPEST} keys deep")
    return keys


def assign(raw: Mapping[str, Any], assignments: Sequence[str]) -> Raw:
    """``raw`` with ``key.sub=value`` assignments: a key gets its value as a whole, whatever it was before."""
    return apply(raw, [Change.read(assignment) for assignment in assignments])


def changes_of(sections: Mapping[str, Any]) -> list[Change]:
    """What :func:`merge` lays over an experiment, key by key."""
    return list(_leaves(in_words(sections)))


def merge(raw: Mapping[str, Any], values: Mapping[str, Any]) -> Raw:
    """``raw`` with ``values`` laid over it key by key; keys that are not named stay as they are.

    None gives a section its defaults back, another ``data.name`` drops keys that mean nothing for it, and ``models``
    names all models that there shall be.
    """
    raw, values = in_words(raw), in_words(values)
    dropped = {key for key, value in values.items() if value is None and key not in ("name", "seed")}
    kept = {key: value for key, value in raw.items() if key not in dropped}
    models, data = values.get("models"), values.get("data")
    if isinstance(data, Mapping) and isinstance(data.get("name"), str):
        kept = {**kept, **_fitting(kept.get("data"), data["name"])}
    if isinstance(models, Mapping) and isinstance(kept.get("models"), Mapping):
        kept["models"] = {name: model for name, model in kept["models"].items() if name in models}
    return apply(kept, list(_leaves({key: value for key, value in values.items() if key not in dropped})))


def _fitting(data: Any, name: str) -> Raw:
    """The section ``data`` without keys that have no meaning for the dataset that takes the place of the file's."""
    if not isinstance(data, Mapping) or data.get("name") == name:
        return {}
    return {"data": {key: value for key, value in data.items() if key not in irrelevant(name)}}


def apply(raw: Mapping[str, Any], changes: Sequence[Change]) -> Raw:
    """``raw`` with changes in their order; another kind (arch, method) takes the keys of the former one with it."""
    result: Raw = plain(raw)
    for change in changes:
        if change.is_choice:
            _forget_another_choice(result, change)
    for change in changes:
        _set(result, change)
    return result


def plain(value: Any) -> Any:
    """What YAML would hold in the place of Python's own values."""
    if isinstance(value, Settings):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, type) and issubclass(value, Part):
        raise ConfigError(f"{value.__name__} is a class, but should be an object of it: {value.__name__}(...)")
    if isinstance(value, FunctionType | type):
        return findable(value, "a function or class")
    return str(value) if isinstance(value, Path) else value


def _leaves(values: Mapping[str, Any], section: Address = ()) -> Iterator[Change]:
    """Every value below ``values`` with its address. A part given as an object is a value, and so comes whole."""
    for key, value in values.items():
        address = (*section, str(key))
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, address)
        else:
            yield Change.of(".".join(address), address, plain(value))


def _forget_another_choice(raw: Raw, change: Change) -> None:
    """Drop the file's other keys beside a choice that is no longer the file's; nothing that a change says is lost."""
    node: Any = raw
    for key in change.address[:-1]:
        node = _below(node, key) if isinstance(node, dict) else None
    both = isinstance(node, dict) and isinstance(change.value, str)
    if both and node.get(change.address[-1], change.value) != change.value:
        clients = node.get("clients")
        node.clear()
        if change.address == ("partition", "kind") and change.value != "natural" and clients is not None:
            node["clients"] = clients  # how many there are is no affair of the kind, unless the data say it


def _set(node: Raw, change: Change) -> None:
    for depth, key in enumerate(change.address[:-1], start=1):
        child = _below(node, key)
        if child is None and key not in node:
            child = node[key] = {}
        if not isinstance(child, dict):
            place = ".".join(change.address[:depth])
            raise ConfigError(f"{change.said}: '{shortened(place)}' is {in_short(child)} and has no keys below it")
        node = child
    node[change.address[-1]] = change.value


def _below(node: Raw, key: str) -> Any:
    """The section behind a key; a method that was given by its name, or as a Method, becomes one."""
    if key == "method" and isinstance(node.get(key), str | Method):
        node[key] = as_mapping(node[key])
    return node.get(key)
