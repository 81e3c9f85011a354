"""The folder of a fusion: one process works in it, and a result comes into it whole, in the place of an older one.

Whatever takes long is kept in ``.fusing``. There, too, the files of a result are made, and when all are done they are
moved to their place, after a note of which ones. Whoever was killed in the middle of that is given them back by the
note, and goes on as if nothing had been moved. An older result goes by the list in its own ``fuse.json``; nothing that
no fusion wrote is removed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from fedfuse.core.errors import DataError, RunFolderError, shortened
from fedfuse.core.files import flush, make_folder, names_in, write_text
from fedfuse.core.hashes import sha256_of_file
from fedfuse.core.plain_json import dumps
from fedfuse.federation.lock import acquire
from fedfuse.fusing.members.files import read_json

WORK, DONE, FACTS = ".fusing", ".fusing.done", "fuse.json"
RESULT, NOTE, LOCK = "result", "moving.json", "lock"
OF_MODELS = ("*.safetensors", "*.bin", "*config.json", "*.index.json", "tokenizer*", "vocab.*", "modules.json")
"""What files of models are called, by which a folder is recognised as one."""


@dataclass(frozen=True)
class ResultFolder:
    """Where a fusion works, and where its result goes."""

    path: Path

    @property
    def work(self) -> Path:
        return self.path / WORK

    def staging(self) -> Path:
        """An empty folder for the files of a result."""
        folder = self.work / RESULT
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def publish(self, made: Path, facts: Mapping[str, Any]) -> None:
        """Put what was made, in a folder inside ``work``, in the place of an older result; the facts come last."""
        names = [name for name in names_in(made) if name != FACTS]
        files = {name: sha256_of_file(made / name) for name in names if (made / name).is_file()}
        write_text(made / FACTS, dumps({**facts, "files": files}, indent=2) + "\n")
        for name in files:
            flush(made / name)
        older = [name for name in _listed(self.path / FACTS) if name not in names]
        note = {"from": made.name, "files": [*names, FACTS], "older": older}
        write_text(self.work / NOTE, dumps(note) + "\n")
        for name in (FACTS, *older, *names):
            _remove(self.path / name)
        for name in (*names, FACTS):
            (made / name).replace(self.path / name)
        flush(self.path)
        self.work.replace(self.path / DONE)  # at once: whoever is killed now is done, and before it nothing was removed
        self.tidy()

    def tidy(self) -> None:
        """Remove what a finished fusion has no more use for."""
        shutil.rmtree(self.path / DONE, ignore_errors=True)

    def take_back(self) -> None:
        """Bring back what a killed process had begun to move, without the older result that it had begun to remove."""
        note = _note(self.work / NOTE)
        if note is None:
            return
        for name in note.older:
            _remove(self.path / name)
        made = self.work / note.made
        made.mkdir(exist_ok=True)
        for name in note.files:
            if os.path.lexists(made / name):
                _remove(self.path / name)
            elif os.path.lexists(self.path / name):
                (self.path / name).replace(made / name)
        (self.work / NOTE).unlink()

    def require_free(self, overwrite: bool) -> None:
        """Raise a RunFolderError if something lies there that would be lost, or be taken for a part of the result."""
        others = [name for name in names_in(self.path) if name not in (WORK, DONE)]
        if others and not overwrite:
            what = "a fused model" if FACTS in others else f"other files ({shortened(others[0])})"
            raise RunFolderError(f"{self.path} holds {what}; choose another folder, or say --overwrite")
        ours = {FACTS, *_listed(self.path / FACTS)}
        strange = [n for n in others if n not in ours and any(fnmatch(n, pattern) for pattern in OF_MODELS)]
        if strange:
            raise RunFolderError(
                f"{self.path} holds {shortened(strange[0])}, which no fusion wrote and which would be taken for a part "
                "of the result; choose another folder, or remove it"
            )


@contextmanager
def own_folder(path: Path, overwrite: bool, models: Sequence[str]) -> Iterator[ResultFolder]:
    """A folder in which nobody else is at work, and in which nothing lies that would be lost; models lie elsewhere."""
    folder = ResultFolder(path)
    for model in models:
        place = Path(model).resolve()
        if place.exists() and path.resolve() in (place, place.parent):
            raise RunFolderError(f"{path} holds a model that is to be fused ({model}); choose another folder")
    folder.tidy()
    if _note(folder.work / NOTE) is None:
        folder.require_free(overwrite)
    make_folder(folder.work)
    try:
        lock = acquire(folder.work / LOCK)
    except (BlockingIOError, FileNotFoundError):
        raise RunFolderError(f"another fusion is at work in {path}") from None
    try:
        folder.take_back()
        folder.require_free(overwrite)
        yield folder
    finally:
        os.close(lock)


def _listed(facts: Path) -> list[str]:
    """The files of an older result, by what it says itself."""
    try:
        files = read_json(facts).get("files")
    except DataError:
        return []
    return [name for name in files if _is_plain(name)] if isinstance(files, dict) else []


class Note(NamedTuple):
    """Which files were being moved, out of which folder, and which ones of an older result were to go."""

    made: str
    files: list[str]
    older: list[str]


def _note(path: Path) -> Note | None:
    """None if nothing was being moved."""
    try:
        said = read_json(path)
    except DataError:
        return None
    made, files, older = said.get("from"), said.get("files"), said.get("older")
    if not _is_plain(made) or not isinstance(files, list) or not isinstance(older, list):
        return None
    return Note(str(made), [name for name in files if _is_plain(name)], [name for name in older if _is_plain(name)])


def _is_plain(name: Any) -> bool:
    """Whether it can be the name of a file of a result, in its folder and nowhere else."""
    return isinstance(name, str) and name not in ("", ".", "..", WORK, DONE) and "/" not in name and "\0" not in name


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
