"""How processes begin that belong to this one: deaf to Ctrl-C, without its script, and not longer than it lives."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker, spawn
from typing import Any


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """What is started here never hears Ctrl-C, which a terminal sends to all: the parent alone decides what follows."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows has none
        yield
        return
    resource_tracker.ensure_running()  # its own start would lift the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_one_at_a_time = threading.Lock()


@contextmanager
def without_script() -> Iterator[None]:
    """What is started here does not run the script that started it, which may have no guard against that."""
    with _one_at_a_time:
        prepare = spawn.get_preparation_data
        spawn.get_preparation_data = lambda name: {
            key: value for key, value in prepare(name).items() if not key.startswith("init_main_")
        }
        try:
            yield
        finally:
            spawn.get_preparation_data = prepare


def end_with_parent() -> None:
    """For a thread of such a process."""
    parent: Any = multiprocessing.parent_process()
    parent.join()
    os._exit(1)
