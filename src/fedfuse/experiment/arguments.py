"""What functions are called with, looked at before anything is done: a wrong type is a sentence, nothing is ignored.

Without this, ``overwrite="no"`` would replace a run, and ``jobs=0`` would wait for ever.
"""

from __future__ import annotations

import inspect
import operator
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedfuse.catalogue.details import EXPERIMENT
from fedfuse.catalogue.details import sections as known_sections
from fedfuse.core.errors import ConfigError, shortened, suggest

OF_SEVERAL = {"methods": "compare", "seeds": "compare", "over": "compare", "jobs": "compare", "budget": "sweep"}
"""Arguments that functions for many runs have, and one of them."""


def whole(name: str, given: Any, least: int = 0) -> int:
    """A whole number, as Python or NumPy has them; truth values and texts are none."""
    try:
        number = operator.index(given)
    except TypeError:
        number = least - 1
    if isinstance(given, bool) or number < least:
        raise ConfigError(f"{name}={shortened(repr(given), 60)}: give a whole number from {least}")
    return number


def truth(name: str, given: Any) -> bool:
    """True or False, and nothing that Python would take for one of them."""
    if not isinstance(given, bool):
        raise ConfigError(f"{name}={shortened(repr(given), 60)}: give True or False")
    return given


def place(name: str, given: Any) -> Path | None:
    """A path, if one is said."""
    if given is None:
        return None
    if not isinstance(given, str | os.PathLike) or given == "":
        raise ConfigError(f"{name}={shortened(repr(given), 60)}: give a path, or leave it out")
    return Path(given)


def texts(name: str, given: Any, example: str) -> list[str]:
    """Texts; a single one needs no list."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, Mapping) or not isinstance(given, Collection) or not all(isinstance(x, str) for x in given):
        raise ConfigError(f"{name}={shortened(repr(given), 60)}: give a list of texts, such as ['{example}']")
    return list(given)


def seeds_of(given: Any) -> list[int]:
    """Different seeds; a single one needs no list."""
    if isinstance(given, str | bytes | Mapping):
        raise ConfigError(f"seeds={shortened(repr(given), 60)}: give whole numbers, such as [0, 1, 2]")
    try:
        seeds = [whole("seeds", seed) for seed in ([] if given is None else given)]
    except TypeError:  # one number is nothing to go through
        seeds = [whole("seeds", given)]
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"seeds={shortened(str(seeds), 60)}: give each seed once")
    return seeds


def several(name: str, given: Any, single: type | tuple[type, ...]) -> list[Any]:
    """Some of what may also stand alone."""
    if given is None or isinstance(given, single):
        return [] if given is None else [given]
    if not isinstance(given, Sequence):
        raise ConfigError(f"{name}={shortened(repr(given), 60)}: give one of them, or a list")
    return list(given)


def check_sections(function: Callable[..., Any], sections: Mapping[str, Any]) -> None:
    """Refuse a keyword that is no section of an experiment but nearly an argument, or another function's argument."""
    own = [name for name, one in inspect.signature(function).parameters.items() if one.kind is one.KEYWORD_ONLY]
    for name in sections:
        if name in known_sections()[EXPERIMENT]:
            continue
        if near := suggest(name, own, listed=False):
            raise ConfigError(f"{function.__name__} has no argument '{shortened(name)}'{near}")
        if other := OF_SEVERAL.get(name):
            raise ConfigError(f"{function.__name__} has no argument '{name}'; fedfuse.{other} has")


def check_said_once(sections: Mapping[str, Any], **arguments: Collection[Any]) -> None:
    """Refuse a keyword beside the argument that would win over it: ``seed=2, seeds=[0, 1]``."""
    for name, given in arguments.items():
        single = name.removesuffix("s")
        if given and single in sections:
            raise ConfigError(f"{single}= and {name}= both say which {single} is run; keep one of them")
