"""One run in a process of its own, which ends with this one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from threading import Thread

from fedfuse.core.errors import FedfuseError
from fedfuse.experiment.comparison.plan import Cell

LAST_WORDS = 4000
"""Bytes that are kept of what a process says."""
OURS = "fedfuse: "
"""What our own sentences begin with."""


class RunProcess:
    """Finishes the run of a cell, whose folder is prepared.

    What it says is read as it comes, so that it never has to wait until somebody listens. It has a session of its own:
    Ctrl-C reaches only us, and we end it with whatever it started.
    """

    def __init__(self, cell: Cell, environment: Mapping[str, str], alone: bool) -> None:
        self.cell = cell
        self._said = b""
        self._process = subprocess.Popen(
            _command(cell, alone),
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=environment, start_new_session=True,
        )  # fmt: skip
        self._listener = Thread(target=self._listen, daemon=True)
        self._listener.start()

    def code(self) -> int | None:
        """How it ended, if it did."""
        return self._process.poll()

    def wait(self, seconds: float | None = None) -> None:
        """Until it has ended, or so long."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def ask_to_end(self) -> None:
        self._process.terminate()

    def end(self) -> None:
        """With whatever it started and left."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._listener.join(1.0)

    def failure(self) -> FedfuseError:
        """What it said last."""
        self.end()
        said = f"\n{self._said.decode(errors='replace')}".rpartition(f"\n{OURS}")[2].strip()
        return FedfuseError(f"{self.cell.label}: {said or f'ended with {self.code()}'}")

    def _listen(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as pipe:
            while said := pipe.read1(LAST_WORDS):  # type: ignore[attr-defined]
                self._said = (self._said + said)[-LAST_WORDS:]


def _command(cell: Cell, alone: bool) -> list[str]:
    command = [sys.executable, "-m", "fedfuse.cli.child", "run", str(cell.folder.path), "--resume", "--quiet"]
    if not alone and getattr(cell.experiment.config.engine, "workers", None) == "auto":
        command += ["--workers", "1"]  # the runs beside it have the other cores
    return command
