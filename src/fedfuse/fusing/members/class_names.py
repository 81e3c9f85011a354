"""Names of classes that tell something, and those that do not."""

from __future__ import annotations

import re
from collections.abc import Sequence

PLACEHOLDER = re.compile(r"(?:(?:label|class)[ _]?)?(\d+)", re.IGNORECASE)


def telling(names: Sequence[str]) -> tuple[str, ...] | None:
    """The names; None if they are nothing but 0, 1, 2 or LABEL_0 in their own places, or if two are the same."""
    numbers = [PLACEHOLDER.fullmatch(name) for name in names]
    if all(found is not None and int(found[1]) == place for place, found in enumerate(numbers)):
        return None
    return tuple(names) if len(set(names)) == len(names) else None
