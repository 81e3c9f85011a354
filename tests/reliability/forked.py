"""Work in forked processes: they have everything imported already, and can be killed without harm."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch

HANGS = 180.0
"""Seconds after which a process is taken to hang."""


class Forked:
    """A process with a session of its own that does this, and ends."""

    def __init__(self, work: Callable[[], None], log: Path) -> None:
        torch.set_num_threads(1)  # a pool of threads would not survive the fork
        self.log, self._code = log, None
        self.pid = os.fork()
        if self.pid == 0:
            _do(work, log)

    def code(self) -> int | None:
        """As a shell has it, or minus the signal; None while it runs."""
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def wait(self, until: Callable[[], bool] = lambda: False, seconds: float = HANGS) -> None:
        """Until it has ended, or until something is so."""
        deadline = time.monotonic() + seconds
        try:
            while self.code() is None and not until():
                if time.monotonic() > deadline:
                    raise HangsError(f"hangs: {self.last_words()}")
                time.sleep(0.001)
        except BaseException:
            self.end()
            raise

    def below(self) -> set[int]:
        return below(self.pid)

    def end(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        while self.code() is None:
            time.sleep(0.01)

    def last_words(self) -> str:
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return " | ".join(lines[-3:])[-400:]


class HangsError(Exception):
    """A process that did not come to its end."""


def command_line(*words: str) -> None:
    """``fedfuse`` with these words."""
    from fedfuse.cli import main

    sys.argv = ["fedfuse", *words]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise


def below(pid: int) -> set[int]:
    """The processes that this one started, directly or not."""
    found, new = set[int](), {pid}
    while new:
        found |= new
        new = {child for parent in new for child in _children(parent)} - found
    return found - {pid}


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def is_worker(pid: int) -> bool:
    try:
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _children(pid: int) -> set[int]:
    """Of all of its threads."""
    found = set()
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found |= set(map(int, thread.read_text().split()))
    return found


def _do(work: Callable[[], None], log: Path) -> None:
    """What the forked process does; it never comes back."""
    code = 1
    try:
        os.setsid()
        with log.open("ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        sys.stdout, sys.stderr = (open(place, "w", buffering=1, closefd=False) for place in (1, 2))  # noqa: SIM115
        work()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except KeyboardInterrupt:
        code = 2
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
