"""Which records this fedfuse writes and reads: a number that every message carries (docs/operation.md, "Upgrades").

It goes up when a message changes so that an older fedfuse would misunderstand it, and with nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedfuse.core.errors import DataError

FORMAT, OURS = "fedfuse-format", 1


def foreign(config: Mapping[str, Any] | None) -> str | None:
    """Why a message with this config is not read, if it is not; one that says nothing, as a guest's, has format 1."""
    theirs = 1 if config is None else config.get(FORMAT, 1)
    number = theirs if type(theirs) is int else "unknown"
    if number == OURS:
        return None
    return f"its records have format {number}, this fedfuse has {OURS}; install versions of one format on both sides"


def check_format(config: Mapping[str, Any] | None) -> None:
    """Refuse a message that is not read."""
    if reason := foreign(config):
        raise DataError(reason)
