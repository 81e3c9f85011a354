"""A lock that one process at a time has, and that dies with it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


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
