"""How processes begin that belong to this one: deaf to Ctrl-C, without its script, and not longer than it lives; and
whether there may be any."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker, spawn
from typing import Any

from fedfuse.core.errors import ConfigError


def may_have_others() -> bool:
    """Whether processes may belong to this one; to a worker of ``multiprocessing.Pool``, none may."""
    return not multiprocessing.current_process().daemon


def check_may_have_others(setting: str) -> None:
    """Raise a ConfigError if what is set needs other processes, and this one may have none."""
    if not may_have_others():
        raise ConfigError(
            f"{setting} needs processes of its own, and a worker of multiprocessing.Pool may have none; set workers to "
            "1 there, or make the pool a concurrent.futures.ProcessPoolExecutor"
        )


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
