"""Files that are either the old one or the whole new one, never half of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from fedfuse.core.errors import RunFolderError

COPIED_AT_ONCE = 1 << 20


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary neighbour of ``path`` to fill, which is then flushed to the disk and renamed into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)  # of a killed process that had this number, or a link that somebody laid there
    try:
        yield temporary
        flush(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    flush(path.parent)


def create(path: Path, private: bool = False) -> BinaryIO:
    """A new file to write; whatever is there already, a link too, is an error. Others cannot read a private one."""
    return open(path, "xb", opener=partial(os.open, mode=0o600 if private else 0o666))


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` fill a new file, and put it into the place of the old one."""
    with replacing(path) as temporary:
        write(temporary)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    with replacing(path) as temporary, create(temporary) as file:
        file.write(content)


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


def is_there(path: Path) -> bool:
    """Whether there is such a file or folder; a disk that does not answer, or not to us, is an error and not a no."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def names_in(folder: Path) -> list[str]:
    """What lies in a folder; nothing if there is no such folder."""
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        if is_there(folder):  # a file in the place of a folder, and not one somewhere above it
            raise
        return []


def make_folder(path: Path) -> None:
    """A folder to write into, and those above it; a file in its place is refused."""
    for place in (path, *path.parents):
        if place.is_file():
            raise RunFolderError(f"{place} is a file; choose another --out")
    path.mkdir(parents=True, exist_ok=True)


def cache_folder() -> Path:
    """``FEDFUSE_CACHE``, or the user's own cache folder."""
    if chosen := os.environ.get("FEDFUSE_CACHE"):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "fedfuse"
