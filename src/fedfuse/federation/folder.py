"""The run folder: fixed names that other tools read, and the rules for who may write into it."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedfuse.core.errors import RunFolderError
from fedfuse.core.files import write_text
from fedfuse.core.plain_json import dumps
from fedfuse.data.partition.files import arrays_beside


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
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def final(self) -> Path:
        return self.path / "final"

    @property
    def pictures(self) -> Path:
        return self.path / "pictures"

    def final_weights(self, prototype: str) -> Path:
        return self.final / f"{prototype}.safetensors"

    def final_client(self, client: int) -> Path:
        return self.final / "clients" / f"{client}.safetensors"

    def holds_a_run(self) -> bool:
        """Whether there is anything to lose: a finished round, or a start that took work."""
        return self.config.exists() and any(self.checkpoints.glob("*.safetensors"))

    def is_complete(self) -> bool:
        return self.summary.exists()

    def read_summary(self) -> dict[str, Any]:
        return json.loads(self.summary.read_text(encoding="utf-8"))  # type: ignore[no-any-return]

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        write_text(self.summary, dumps(summary, indent=2) + "\n")

    def clear(self) -> None:
        """Remove a run, and nothing that is not a run's."""
        for path in (self.summary, self.events, self.partition, arrays_beside(self.partition)):
            path.unlink(missing_ok=True)
        for folder in (self.checkpoints, self.final, self.pictures):
            shutil.rmtree(folder, ignore_errors=True)
        self.config.unlink(missing_ok=True)  # last: as long as anything is left, the folder is known as a run's

    def sweep(self) -> None:
        """Remove the half-written files of a process that was killed."""
        for leftover in self.path.rglob(".*.tmp"):
            leftover.unlink()

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Make the folder if need be, and keep other processes out of it; the lock dies with the process."""
        self._create()
        lock = self.path / ".lock"
        descriptor = os.open(lock, os.O_CREAT | os.O_RDWR)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunFolderError(f"{self.path} is in use by another run; wait or choose another --out") from None
            try:
                yield
            finally:
                self._remove_if_unused(lock)
        finally:
            os.close(descriptor)

    def _create(self) -> None:
        """Make the folder, and refuse one that holds somebody else's files."""
        if self.path.exists() and not self.path.is_dir():
            raise RunFolderError(f"{self.path} is a file; choose another --out")
        self.path.mkdir(parents=True, exist_ok=True)
        strangers = [entry.name for entry in self.path.iterdir() if not entry.name.startswith(".")]
        if strangers and not self.config.exists():
            raise RunFolderError(f"{self.path} holds other files ('{min(strangers)}') and no run; choose another --out")

    def _remove_if_unused(self, lock: Path) -> None:
        """A folder in which nothing came to be is not left behind."""
        if [entry.name for entry in self.path.iterdir()] == [lock.name]:
            lock.unlink()
            self.path.rmdir()
