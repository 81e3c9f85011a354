"""A party's books in a file of its own, which nobody else can read."""

from __future__ import annotations

from pathlib import Path

from fedfuse.core.errors import DataError
from fedfuse.core.tensor_files import DamagedError, read_safetensors, write_safetensors
from fedfuse.privacy.books import Books


def write_books(path: Path, books: Books) -> None:
    """Wait until the disk has them."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_safetensors(path, books.written(), {}, private=True)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}; nothing was sent, because it cannot be counted") from None


def read_books(path: Path, kinds: int) -> Books:
    """Empty ones where there are none; there are so many kinds of those whom releases are about."""
    try:
        return Books.read(kinds, read_safetensors(path)[0])
    except FileNotFoundError:
        return Books([{} for _ in range(kinds)])
    except (DamagedError, DataError, OSError) as error:
        raise DataError(
            f"{path}, what this client has given away so far, cannot be read ({error}); restore it: without it nothing "
            "can be counted"
        ) from error
