"""File operations at one of which a process dies, or the disk fails."""

from __future__ import annotations

import errno
import io
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

How = Literal["before", "after", "half", "error", "half error", "gone"]
"""Killed before the operation, after it, or with half of what it writes; an error of the disk in its place, or after
half of what it writes; or that error from there on."""
HOWS: tuple[How, ...] = get_args(How)
DISK_ERROR = OSError(errno.EIO, os.strerror(errno.EIO))


class MortalFiles:
    """Counts what is done to the files of a folder, and strikes once it comes to number ``at``.

    ``put`` replaces the functions of Python's modules, for good unless it is a monkeypatch's.
    """

    def __init__(
        self,
        folder: Path,
        at: int | None = None,
        how: How = "before",
        error: BaseException = DISK_ERROR,
        put: Callable[[Any, str, Any], None] = setattr,
    ) -> None:
        self.folder, self.at, self.how, self.error = folder.absolute(), at, how, error
        self.count = 0
        self._open_file = io.open
        for name in ("replace", "unlink", "truncate", "open"):
            put(os, name, self._guarded(getattr(os, name)))
        put(os, "fsync", self._counted(os.fsync))
        put(io, "open", self._opened)  # what Path.open, write_bytes and write_text call

    def step(self, operation: Callable[[], Any], half: Callable[[], Any] = lambda: None) -> Any:
        """An operation, unless its time has come."""
        self.count += 1
        if self.at is None or self.count < self.at or (self.count > self.at and self.how != "gone"):
            return operation()
        if self.how == "after":
            operation()
        elif self.how in ("half", "half error"):
            half()
        if self.how in ("error", "half error", "gone"):
            raise self.error
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("dead processes do not go on")

    def _is_ours(self, path: Any) -> bool:
        return isinstance(path, str | os.PathLike) and Path(path).absolute().is_relative_to(self.folder)

    def _guarded(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        def done(path: Any, *arguments: Any, **options: Any) -> Any:
            if not self._is_ours(path):
                return operation(path, *arguments, **options)
            return self.step(lambda: operation(path, *arguments, **options))

        return done

    def _counted(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments: self.step(lambda: operation(*arguments))

    def _opened(self, path: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if not self._is_ours(path) or mode not in ("wb", "ab", "w", "a"):
            return self._open_file(path, mode, *arguments, **options)
        raw = self.step(lambda: _Raw(self, os.fspath(path), mode[0] + "b"))
        if 0 in (options.get("buffering"), *arguments[:1]):
            return raw
        file = io.BufferedWriter(raw)
        return file if "b" in mode else io.TextIOWrapper(file, encoding="utf-8", write_through=True)


class _Raw(io.FileIO):
    """A file whose every write to the system may be the last."""

    def __init__(self, files: MortalFiles, path: str, mode: str) -> None:
        super().__init__(path, mode)
        self._files = files

    def write(self, content: Any) -> int:
        memory = memoryview(content).cast("B")
        write = super().write
        return self._files.step(lambda: write(memory), lambda: write(memory[: len(memory) // 2]))
