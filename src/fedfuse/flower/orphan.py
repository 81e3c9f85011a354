"""A server whose SuperLink is gone ends, and lets go of its run folder, so that the run can be started again.

Flower ends a ServerApp whose parent is gone by a signal that it raises in a thread of its own. Python answers signals
in the main thread, which that does not wake while it waits for others, such as those that try to reach the SuperLink.
"""

from __future__ import annotations

import os
import signal
import threading
import time

LOOK, GRACE = 1.0, 10.0
"""Seconds between looks, and those in which Flower's own way may do."""


def end_with_parent() -> None:
    """From now on, interrupt the main thread once the process that started this one is gone."""
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK)
    time.sleep(GRACE)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
