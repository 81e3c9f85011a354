"""Where files are written that take long: a folder beside their place, from which they are moved there at once.

A journal has the hashes of finished files. Whoever was interrupted goes on if the journal is about the same work, by
its identity; a file that has not the hash that the journal says is written anew.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedfuse.core.errors import DataError
from fedfuse.core.files import flush, is_there, write_text
from fedfuse.core.hashes import sha256_of_file
from fedfuse.core.plain_json import dumps
from fedfuse.federation.lock import acquire

JOURNAL, RESULT, LOCK = "journal.json", "result", "lock"


class Workplace:
    """The folder of one work, whose ``identity`` says all that its files depend on."""

    def __init__(self, folder: Path, identity: str) -> None:
        self.folder, self.identity = folder, identity
        self.files: dict[str, str] = _finished(folder / JOURNAL, identity)
        """The hashes of finished files."""
        for entry in (folder / RESULT).iterdir():
            if self.files.get(entry.name) != (sha256_of_file(entry) if entry.is_file() else None):
                self.files.pop(entry.name, None)
                entry.unlink()
        self.files = {name: digest for name, digest in self.files.items() if (folder / RESULT / name).is_file()}

    def write(self, name: str, write: Callable[[Path], None]) -> None:
        """One file of the result, unless it is there already."""
        path = self.folder / RESULT / name
        if name not in self.files:
            write(path)
            self.files[name] = sha256_of_file(path)
            write_text(self.folder / JOURNAL, dumps({"identity": self.identity, "files": self.files}))

    def finish(self, target: Path, name: str | None = None) -> None:
        """Move the result to its place: the whole folder, or the file of this name."""
        (self.folder / RESULT / (name or "")).replace(target)
        flush(target.parent)
        shutil.rmtree(self.folder)


@contextmanager
def working(target: Path, identity: str) -> Iterator[Workplace]:
    """The place of work for something that is not there yet, for one process at a time."""
    if is_there(target):
        raise DataError(f"{target} is there already; choose another place or remove it")
    folder, lock = target.with_name(f".{target.name}.merging"), None
    try:
        (folder / RESULT).mkdir(parents=True, exist_ok=True)
        lock = acquire(folder / LOCK)
        yield Workplace(folder, identity)
    except BlockingIOError:
        raise DataError(f"another process is writing {target} at this moment; wait for it or stop it") from None
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror or error}") from None
    finally:
        if lock is not None:
            os.close(lock)


def _finished(journal: Path, identity: str) -> dict[str, str]:
    try:
        said: Any = json.loads(journal.read_bytes())
        same = said["identity"] == identity
        return {str(name): str(digest) for name, digest in said["files"].items()} if same else {}
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
