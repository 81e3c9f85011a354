"""What Python may hand over, and no file could hold, is refused before anything is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedfuse.core.errors import ConfigError, shortened
from fedfuse.core.text import is_utf8
from fedfuse.core.yaml_text import DEEPEST, LONGEST_NUMBER, MOST_VALUES

TOO_HIGH = 10**LONGEST_NUMBER


def check_extent(raw: Any, where: str) -> None:
    """Not too many values, none of them too deep, too long or half a character; what goes in circles has no end."""
    left, seen = [(raw, 0)], 0
    while left:
        value, depth = left.pop()
        seen += 1
        if depth > DEEPEST:
            raise ConfigError(f"{where}: values are nested more than {DEEPEST} deep")
        if seen > MOST_VALUES:
            raise ConfigError(f"{where}: there are more than {MOST_VALUES:,} values")
        if isinstance(value, Mapping):
            left += [(part, depth + 1) for pair in value.items() for part in pair]
        elif isinstance(value, list | tuple):
            left += [(part, depth + 1) for part in value]
        else:
            _check(value, where)


def _check(value: Any, where: str) -> None:
    if isinstance(value, int) and abs(value) >= TOO_HIGH:
        raise ConfigError(f"{where}: a number is longer than {LONGEST_NUMBER} digits")
    if isinstance(value, str) and not is_utf8(value):
        raise ConfigError(f"{where}: {shortened(ascii(value))} holds half of a character")
