"""Progress on its way from a Ray task to the run: a small queue, a tick now and then. To lose one is no loss."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from fedfuse.runtime.pool import Progress

PACE = 0.5
"""Seconds between ticks, and between looks for them."""


class ProgressQueue:
    """The run's end of the queue, which is a Ray actor that wants no CPU."""

    def __init__(self) -> None:
        from ray.util.queue import Queue

        self.queue: Any = Queue(maxsize=100, actor_options={"num_cpus": 0, "max_restarts": -1})

    def pass_on(self, progress: Progress) -> None:
        """Tell what came since the last time."""
        from ray.exceptions import RayError

        with suppress(RayError):
            for tick in self.queue.get_nowait_batch(self.queue.qsize()):
                progress(*tick)

    def close(self) -> None:
        self.queue.shutdown(force=True)


class ProgressSender:
    """The task's end: at most one tick in PACE seconds, and the last one of each stretch of work."""

    def __init__(self, queue: Any) -> None:
        self.queue = queue
        self._next = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        from ray.exceptions import RayError
        from ray.util.queue import Full

        if done < total and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + PACE
        with suppress(Full, RayError):
            self.queue.put_nowait((what, done, total))
