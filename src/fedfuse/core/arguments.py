"""What functions of the front door are called with, looked at before anything is done: a wrong type is a sentence.

Without this, ``overwrite="no"`` would replace a run, and ``jobs=0`` would wait for ever.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from fedfuse.core.errors import ConfigError, shortened


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
