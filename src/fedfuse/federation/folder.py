"""The run folder: fixed names that other tools read, and the rules for who may write into it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedfuse.core.errors import RunFolderError
from fedfuse.core.files import is_there, make_folder, names_in, write_text
from fedfuse.core.plain_json import dumps
from fedfuse.core.round_files import path_of
from fedfuse.data.partition.files import arrays_beside
from fedfuse.federation.events import has_finished_rounds
from fedfuse.federation.lock import acquire

OWN = {
    "checkpoints/clients": re.compile(r"round-[0-9]{6,}\.states"),
    "checkpoints": re.compile(r"round-[0-9]{6,}\.safetensors(\.damaged)?"),
    "final/clients": re.compile(r"[0-9]+\.safetensors"),
    "final": re.compile(r".+\.safetensors"),
    "pictures": re.compile(r".+\.png"),
}
"""What a run calls its files in its folders; any other file is somebody else's."""
OF_ROUNDS = ("best", "clients")
"""Folders that have a folder for each of several rounds, with files of models in it."""
ROUND = re.compile(r"round-[0-9]{6,}")
MODEL = re.compile(r".+\.safetensors")
HALF_WRITTEN = re.compile(r"\..+\.[0-9]+\.tmp")
FOR_EVER = 1e12
"""Seconds that no run takes."""
MOST_ATTEMPTS = 1000
"""To lock a folder that others make and remove meanwhile."""


@dataclass(frozen=True)
class RunFolder:
    """Where everything of one run lies."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.yaml"

    @property
    def partition(self) -> Path:
        return self.path / "partition.json"

    @property
    def events(self) -> Path:
        return self.path / "events.jsonl"

    @property
    def summary(self) -> Path:
        return self.path / "summary.json"

    @property
    def confusion(self) -> Path:
        """Which classes the final models take for which."""
        return self.path / "confusion.json"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def final(self) -> Path:
        return self.path / "final"

    @property
    def pictures(self) -> Path:
        return self.path / "pictures"

    @property
    def best(self) -> Path:
        return self.path / "best"

    @property
    def clients(self) -> Path:
        """Where clients' models of every round are, if they are kept."""
        return self.path / "clients"

    def best_of(self, number: int) -> Path:
        """The models of a round that was the best."""
        return path_of(self.best, number, "")

    def final_weights(self, prototype: str) -> Path:
        return self.final / f"{prototype}.safetensors"

    def final_client(self, client: int) -> Path:
        return self.final / "clients" / f"{client}.safetensors"

    def holds_a_run(self) -> bool:
        """Whether there is anything to lose: a finished round, a start that took work, or a result."""
        return (
            self.is_complete()
            or any(self._own_files("checkpoints"))
            or any(self.models())
            or has_finished_rounds(self.events)
        )

    def models(self) -> Iterator[Path]:
        """The files of final models, the server's and the clients'."""
        return self._own_files("final", "final/clients")

    def is_complete(self) -> bool:
        return is_there(self.summary)

    def read_summary(self) -> dict[str, Any]:
        try:
            summary = json.loads(self.summary.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise RunFolderError(f"{self.path} holds no finished run") from None
        except (ValueError, RecursionError):
            summary = None
        if not _is_summary(summary):
            raise RunFolderError(
                f"{self.summary} is damaged; bring it back, or remove it and let --resume write it again"
            )
        return summary  # type: ignore[no-any-return]

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        write_text(self.summary, dumps(summary, indent=2) + "\n")

    def clear(self) -> None:
        """Remove a run, and nothing that is not a run's; its config stays, so that the folder is known as a run's."""
        for name in sorted((*OWN, *OF_ROUNDS)):
            if (folder := self.path / name).is_symlink():
                folder.unlink()  # and what it points to stays
        facts = (self.summary, self.events, self.confusion, self.partition, arrays_beside(self.partition))
        for path in (*facts, *self._own_files(*OWN)):
            path.unlink(missing_ok=True)
        for folder in self._of_rounds():
            self.remove(folder)
        for name in (*OWN, *OF_ROUNDS):
            with suppress(OSError):  # not there, or not empty
                (self.path / name).rmdir()

    def remove(self, folder: Path) -> None:
        """What a round left of models: the run's own files, and the folder if nothing else is in it."""
        if folder.is_symlink():
            folder.unlink()
            return
        for inner in (folder / "clients", folder):
            for name in names_in(inner):
                if MODEL.fullmatch(name):
                    (inner / name).unlink()
            with suppress(OSError):  # not there, or not empty
                inner.rmdir()

    def _own_files(self, *folders: str) -> Iterator[Path]:
        """What lies in these folders and is the run's."""
        for name in folders:
            entries = names_in(self.path / name)
            yield from (self.path / name / entry for entry in entries if OWN[name].fullmatch(entry))

    def _of_rounds(self) -> Iterator[Path]:
        """The folders of single rounds."""
        for name in OF_ROUNDS:
            yield from (self.path / name / entry for entry in names_in(self.path / name) if ROUND.fullmatch(entry))

    def sweep(self) -> None:
        """Remove the half-written files of a process that was killed."""
        of_rounds = [inner for folder in self._of_rounds() for inner in (folder, folder / "clients")]
        for folder in (self.path, *(self.path / name for name in OWN), *of_rounds):
            for name in names_in(folder):
                if HALF_WRITTEN.fullmatch(name):
                    (folder / name).unlink()

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Make the folder if need be, and keep other processes out of it; the lock dies with the process."""
        lock = self.path / ".lock"
        descriptor = self._locked(lock)
        try:
            try:
                yield
            finally:
                self._remove_if_unused(lock)
        finally:
            os.close(descriptor)

    def _locked(self, lock: Path) -> int:
        for _ in range(MOST_ATTEMPTS):
            try:
                self._create()
                return acquire(lock)
            except BlockingIOError:
                break
            except (FileNotFoundError, FileExistsError):
                continue  # another process has just removed the folder, in which nothing had come to be
        raise RunFolderError(f"{self.path} is in use by another run; wait or choose another --out")

    def _create(self) -> None:
        """Make the folder, and refuse one that holds somebody else's files."""
        make_folder(self.path)
        strangers = [entry.name for entry in self.path.iterdir() if not entry.name.startswith(".")]
        if strangers and not is_there(self.config):
            raise RunFolderError(f"{self.path} holds other files ('{min(strangers)}') and no run; choose another --out")

    def _remove_if_unused(self, lock: Path) -> None:
        """A folder in which nothing came to be is not left behind."""
        if names_in(self.path) == [lock.name]:
            lock.unlink()
            with suppress(OSError):  # another process has made a lock of its own in it
                self.path.rmdir()


def _is_summary(value: Any) -> bool:
    """Whether it has what every reader of results asks for."""
    prototypes = value.get("prototypes") if isinstance(value, dict) else None
    return (
        isinstance(prototypes, dict)
        and {"name", "method", "seed"} <= value.keys()
        and type(value.get("rounds")) is int
        and isinstance(seconds := value.get("seconds"), int | float)
        and 0 <= seconds < FOR_EVER
        and all(isinstance(values, dict) and _is_measured(values) for values in prototypes.values())
    )


def _is_measured(values: Mapping[str, Any]) -> bool:
    accuracy = values.get("accuracy_last", "")
    return accuracy is None or (isinstance(accuracy, float | int) and 0 <= accuracy <= 1)
