"""Files that are either the old one or the whole new one, never half of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

COPIED_AT_ONCE = 1 << 20


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary neighbour of ``path`` to fill, which is then flushed to the disk and renamed into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        flush(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    flush(path.parent)


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` fill a new file, and put it into the place of the old one."""
    with replacing(path) as temporary:
        write(temporary)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def copy(source: BinaryIO, target: BinaryIO, length: int) -> None:
    """So many bytes from where one file is to where the other is."""
    while length:
        content = source.read(min(length, COPIED_AT_ONCE))
        if not content:
            raise OSError("a file ends too early to be copied")
        target.write(content)
        length -= len(content)


def flush(path: Path) -> None:
    """Wait until the disk has what was written to this file, or into this folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cache_folder() -> Path:
    """``FEDFUSE_CACHE``, or the user's own cache folder."""
    if chosen := os.environ.get("FEDFUSE_CACHE"):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "fedfuse"
