"""JSON that every reader takes: a number that is not finite is null, because JSON has no word for it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def dumps(value: Any, indent: int | None = None) -> str:
    """``value`` as JSON text."""
    try:
        return json.dumps(value, indent=indent, allow_nan=False)
    except (TypeError, ValueError):  # seldom: a number that is not finite, or a mapping that is no dict
        return json.dumps(_plain(value), indent=indent, allow_nan=False)


def finite(number: float | None) -> float | None:
    """The number, or None where it is not finite, as records have it."""
    return number if number is not None and math.isfinite(number) else None


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value
