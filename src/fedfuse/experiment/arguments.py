"""What functions about experiments are called with: nothing that is said is passed over."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from fedfuse.catalogue.details import EXPERIMENT
from fedfuse.catalogue.details import sections as known_sections
from fedfuse.core.arguments import whole
from fedfuse.core.errors import ConfigError, shortened, suggest

OF_SEVERAL = {"methods": "compare", "seeds": "compare", "over": "compare", "jobs": "compare", "budget": "sweep"}
"""Arguments that functions for many runs have, and one of them."""


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
