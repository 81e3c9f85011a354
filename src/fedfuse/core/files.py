"""Files that are either the old one or the whole new one, never half of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` fill a temporary neighbour of ``path``, flush it to the disk and rename it into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        _flush(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _flush(path.parent)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    def write(temporary: Path) -> None:
        temporary.write_bytes(content)

    write_atomically(path, write)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
