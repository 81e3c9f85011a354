"""What a file may ask of the machine that reads it, checked before it is done."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from fedfuse.core.errors import DataError
from fedfuse.core.memory import free_memory, in_gigabytes


def check_fits(size: int, where: str) -> None:
    """So many bytes can be had: a small file may stand for more than any machine has."""
    free = free_memory()
    if free is not None and size > free:
        raise DataError(
            f"{where} needs {in_gigabytes(size)} of memory, but only {in_gigabytes(free)} are free; give fewer or "
            "smaller examples"
        )


def check_is_file(path: Path) -> None:
    """A file that ends: reading from a pipe or a device may take for ever, and some links lead nowhere."""
    if not path.exists() and not path.is_symlink():
        raise DataError(f"{path} does not exist")
    if not path.is_file():
        raise DataError(f"{path} is no regular file; remove it, or put the file itself there")


def beside(folder: Path, name: str, where: str) -> Path:
    """The file that a table names, which must lie with it."""
    place = PurePosixPath(name)
    if place.is_absolute() or ".." in place.parts:
        raise DataError(f"{where}: '{name}' leads out of {folder}; a table may only name files that lie beside it")
    return folder / place
