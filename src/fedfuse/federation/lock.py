"""A lock that one process at a time has, and that dies with it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

LOCKS = Path("/proc/locks")
"""Where Linux says who has which lock."""


def acquire(path: Path) -> int:
    """The lock as an open file: closing it gives the lock back.

    Raises BlockingIOError if another process has it, and FileNotFoundError if the file was removed before that:
    another process may have locked a new one.
    """
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
        raise FileNotFoundError(path)
    except BaseException:
        os.close(descriptor)
        raise


def is_held(path: Path) -> bool | None:
    """Whether some process has the lock, found out without ever taking it; None where the system does not tell."""
    try:
        number = path.stat().st_ino
    except OSError:
        return False
    try:
        lines = LOCKS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return any(_locks(line.split(), number) for line in lines)


def _locks(words: list[str], number: int) -> bool:
    """``1: FLOCK ADVISORY WRITE <process> <device>:<number of the file> 0 EOF``"""
    return len(words) == 8 and words[1] == "FLOCK" and words[5].rpartition(":")[2] == str(number)
