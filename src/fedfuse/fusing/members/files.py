"""Files of strangers: looked at before they are read, and read only as far as they can be what they claim."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedfuse.core.errors import DataError, shortened
from fedfuse.core.hashes import sha256_of_file
from fedfuse.core.imports import first_line
from fedfuse.data.readers.bounds import check_is_file

LONGEST_TEXT = 20_000_000
"""Bytes of a JSON file; the longest honest ones are indices of thousands of tensors, and vocabularies."""
IN_THE_INTERPRETER = "TorchScript interpreter"
"""Errors from there name their cause in the last line."""


def first_bytes(path: Path, count: int) -> bytes:
    """Of a regular file that may be read."""
    check_is_file(path)
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None


def read_json(path: Path, longest: int = LONGEST_TEXT) -> dict[str, Any]:
    """A mapping, or one sentence."""
    text = first_bytes(path, longest + 1)
    if len(text) > longest:
        raise DataError(f"{path} is longer than {longest:,} bytes, which no such file of a model is")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise DataError(f"{path} is not JSON; fetch the file again") from None
    if not isinstance(value, dict):
        raise DataError(f"{path} holds no mapping; fetch the file again")
    return value


def sha256_of_files(paths: Sequence[Path]) -> str:
    """Of one file its own; of several that of their names and contents, in the order of their names."""
    if len(paths) == 1:
        return sha256_of_file(paths[0])
    digest = hashlib.sha256()
    for path in sorted(paths, key=lambda path: path.name):
        digest.update(f"{path.name}\0{sha256_of_file(path)}\n".encode())
    return digest.hexdigest()


def in_brief(error: BaseException) -> str:
    """The first line of what a foreign package says, short enough for a sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = lines[-1] if lines and IN_THE_INTERPRETER in lines[0] else first_line(error)
    return ascii(shortened(told, 300))[1:-1]
