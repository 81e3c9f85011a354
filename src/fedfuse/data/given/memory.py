"""What was given lies here by its hash, for this process, and for processes that it starts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from fedfuse.core.errors import DataError
from fedfuse.data.given.arrays import Arrays
from fedfuse.data.given.tables import Tables
from fedfuse.data.readers import Found, Reading

GIVEN: Mapping[str, type[Arrays] | type[Tables]] = {"arrays": Arrays, "tables": Tables}
"""By ``data.name``."""
FOLDER = "FEDFUSE_GIVEN"
"""The environment variable by which a process that we start is told where it finds them."""


class Given(Protocol):
    """Examples in memory."""

    def sha256(self) -> str:
        """Of all that they hold."""

    def read(self, reading: Reading) -> Found:
        """As every other dataset is read."""

    def write(self, folder: Path) -> None:
        """Into a new folder, without pickle."""


_held: dict[str, Given] = {}


def hold(given: Given) -> str:
    """Keep it for the life of this process; its name."""
    sha256 = given.sha256()
    _held[sha256] = given
    return sha256


def read_given(name: str, sha256: str, reading: Reading) -> Found:
    """The data of this hash."""
    given = _held.get(sha256) or _from_folder(name, sha256)
    if given is None:
        raise DataError(
            f"the {name} of this experiment came from Python and are not in this process; give them again, as in "
            "fedfuse.run(FOLDER, data=..., resume=True)"
        )
    if given.sha256() != sha256:
        raise DataError(f"the {name} were changed after they were given as data; give them again")
    return given.read(reading)


@contextmanager
def handed_over(hashes: Iterable[str]) -> Iterator[Mapping[str, str]]:
    """The environment for processes that need what is held here; they find it in files, as long as this lasts."""
    wanted = {sha256: _held[sha256] for sha256 in hashes if sha256 in _held}
    if not wanted:
        yield os.environ
        return
    with TemporaryDirectory(prefix="fedfuse-") as folder:
        for sha256, given in wanted.items():
            given.write(Path(folder) / sha256)
        yield {**os.environ, FOLDER: folder}


def _from_folder(name: str, sha256: str) -> Given | None:
    folder = Path(os.environ.get(FOLDER, "")) / sha256
    return GIVEN[name].at(folder) if FOLDER in os.environ and folder.is_dir() else None
