"""What a command line names, found or refused before anything heavy is imported."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedfuse.catalogue.details import CHOOSERS
from fedfuse.core.errors import ConfigError, UnknownKeyError, shortened, unknown
from fedfuse.experiment import presets

YAML = (".yaml", ".yml")


def find_experiment(given: str | Path) -> Path | None:
    """The file or run folder that is meant; None if it is a preset."""
    path = Path(given)
    if path.is_dir() or path.is_file():
        return path
    if path.suffix in YAML:
        if not path.exists():
            raise ConfigError(f"{path}: {os.strerror(errno.ENOENT)}")
        return path
    if str(given) in presets.names():
        return None
    raise ConfigError(unknown("file or preset", str(given), presets.names()))


def check_keys(given: str | Path, assignments: Sequence[str], methods: bool = True) -> None:
    """Refuse a misspelt key, kind or word of an experiment, in the sentence that it would get later.

    What a run folder holds was written by us. ``methods`` says whether keys of methods are meant for this one's.
    """
    from fedfuse.catalogue.misspelt import misspellings
    from fedfuse.core.yaml_text import load_yaml, read_yaml

    path = find_experiment(given)
    if path is not None and path.is_dir():
        return
    raw = load_yaml(presets.text(str(given)), str(given)) if path is None else read_yaml(path)
    changed = _changed(raw, assignments)
    if not methods:
        changed.pop("method", None)
    for problem in misspellings(changed, str(given)):
        raise problem


def check_varied(given: str | Path, overs: Sequence[str], assignments: Sequence[str], methods: bool = True) -> None:
    """Refuse a key to vary that no part has, whatever is chosen; other keys depend on what else varies."""
    from fedfuse.catalogue.keys import every_place
    from fedfuse.catalogue.misspelt import misfit

    for text in overs:
        key, equals, values = text.partition("=")
        if not equals or not values or key in every_place() or (key.startswith("method") and not methods):
            continue
        try:
            check_keys(given, [*assignments, f"{key}=null"], methods)
        except UnknownKeyError as error:
            raise misfit(f"--over {shortened(text)} fits nothing here", [error]) from None


def _changed(raw: dict[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """The experiment with assignments, as far as they can be followed here; whoever reads it for good knows better."""
    from fedfuse.core.yaml_text import load_yaml

    pairs = (one.partition("=") for one in assignments)
    changes = [(address.split("."), text) for address, equals, text in pairs if equals and address]
    for keys, text in changes:
        try:
            value = load_yaml(text, "a value")
        except ConfigError:
            continue
        if keys == ["method"] and isinstance(value, str):
            keys = ["method", "name"]
        node: Any = raw
        for key in keys[:-1]:
            if key == "method" and isinstance(node.get(key, ""), str):
                node[key] = {"name": node[key]} if key in node else {}
            node = node.setdefault(key, {})
            if not isinstance(node, dict):
                break
        else:
            chooses = len(keys) > 1 and (keys[-1] in CHOOSERS or keys == ["method", "name"])
            if chooses and isinstance(value, str) and node.get(keys[-1], value) != value:
                _forget(node, keys[:-1], changes)
            node[keys[-1]] = value
    return raw


def _forget(node: dict[str, Any], at: list[str], changes: Sequence[tuple[list[str], str]]) -> None:
    """Drop what the file says about a part of another kind; what an assignment said stays."""
    said = {keys[len(at)] for keys, _ in changes if keys[: len(at)] == at and len(keys) > len(at)}
    for key in [key for key in node if key not in said]:
        del node[key]


def check_method(name: str, experiment: str) -> None:
    """Refuse a method that is not there, in the sentence that the experiment would get."""
    from fedfuse.catalogue.method_names import check_name

    try:
        check_name(name)
    except ConfigError as error:
        raise ConfigError(f"{experiment}: {error}") from None


def check_places(places: Sequence[str | Path]) -> None:
    """Refuse folders of runs that are not there."""
    for place in places:
        if not Path(place).is_dir():
            why = "is a file" if Path(place).is_file() else "does not exist"
            raise ConfigError(f"{place} {why}; give the folder of a run, or one that holds several")
