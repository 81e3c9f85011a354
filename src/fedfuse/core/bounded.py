"""Small files from elsewhere, read within bounds: a file of a run folder is no place for gigabytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fedfuse.core.errors import RunFolderError


def read_bounded(path: Path, most: int) -> bytes:
    """A file's content; what is no file, or longer than a file of its kind can be, is refused."""
    if not path.is_file():
        raise RunFolderError(f"{path} is not a file")
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise RunFolderError(f"{path} is longer than {most:,} bytes, which no such file is")
    return content


def read_json(path: Path, most: int) -> Any:
    """The value in a file of JSON, or one sentence."""
    try:
        return json.loads(read_bounded(path, most))
    except (ValueError, RecursionError):
        raise RunFolderError(f"{path} is damaged; bring it back, or remove it") from None
