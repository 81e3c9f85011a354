"""Paths as people write them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from fedfuse.core.errors import ConfigError
from fedfuse.core.text import is_utf8


def _text(value: Any) -> Any:
    """A path of Python as the text that a file would hold."""
    if not isinstance(value, os.PathLike):
        return value
    text = os.fspath(value)
    if not isinstance(text, str) or not is_utf8(text):
        raise ValueError(f"{value!a} is no path that a file of an experiment could name; rename it")
    return text


PathText = Annotated[str, BeforeValidator(_text)]
"""A text that names a file or folder; Python may give a ``Path``."""


def expanded(path: str, key: str) -> Path:
    """With a home in the place of ``~`` or ``~user``; ``key`` begins the sentence about a user that there is not."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ConfigError(f"{key}: {path} begins with a user that is not known here") from None
