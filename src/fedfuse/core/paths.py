"""Paths as people write them."""

from __future__ import annotations

from pathlib import Path

from fedfuse.core.errors import ConfigError


def expanded(path: str, key: str) -> Path:
    """With a home in the place of ``~`` or ``~user``; ``key`` begins the sentence about a user that there is not."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ConfigError(f"{key}: {path} begins with a user that is not known here") from None
