"""A party's books in a file of its own, which nobody else can read."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedfuse.core.errors import DataError
from fedfuse.core.tensor_files import DamagedError, read_safetensors, write_safetensors
from fedfuse.privacy.books import Books

About = Mapping[str, Any]
"""What the numbers in books are about. Releases that protect examples do not add up with those that protect clients."""


def write_books(path: Path, books: Books, about: About | None = None) -> None:
    """Wait until the disk has them."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_safetensors(path, books.written(), about or {}, private=True)
    except OSError as error:
        raise _unwritten(path, error) from None


def read_books(path: Path, kinds: int, about: About | None = None) -> Books:
    """Empty ones where there are none; there are so many kinds of those whom releases are about."""
    try:
        tensors, said = read_safetensors(path)
        if not said or about is None or said == about:  # earlier versions said nothing
            return Books.read(kinds, tensors)
    except FileNotFoundError:
        return Books([{} for _ in range(kinds)])
    except (DamagedError, DataError, OSError) as error:
        raise DataError(
            f"{path}, what this client has given away so far, cannot be read ({error}); restore it: without it nothing "
            "can be counted"
        ) from error
    raise DataError(
        f"{path} counts what this client has given away under a promise of another unit, or against others, which does "
        "not add up with this one; give the experiment another name"
    )


@contextmanager
def alone_with(path: Path) -> Iterator[None]:
    """Between reading books and writing them nobody else does; a node may have several answers to make."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise _unwritten(path, error) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _unwritten(path: Path, error: OSError) -> DataError:
    return DataError(f"{path}: {error.strerror}; nothing was sent, because it cannot be counted")
