"""This process trains clients itself, and worker processes join it once they would shorten the run.

Nobody has to say how many processes a run shall have, and no bit depends on it: what a job takes is measured as it is
done, and when enough of them are left, one worker for every other core is started in the background. Until they are
ready, and afterwards beside them, this process goes on working.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from threading import Event, Thread
from typing import Any

from fedfuse.core.errors import FedfuseError
from fedfuse.core.memory import free_memory
from fedfuse.engines.base import SimulatedEngine
from fedfuse.engines.beginnings import may_have_others
from fedfuse.engines.jobs import Job
from fedfuse.engines.packing import pack
from fedfuse.engines.workers import WorkersEngine
from fedfuse.federation.client import Clients
from fedfuse.federation.events import EventLog
from fedfuse.runtime.pool import silence

WORTH_SECONDS = 4.0
"""Work that must be left before workers are started: a little more than they take to start."""
WORTH_A_JOB = 0.01
"""Seconds that a job must take before it is worth its way to another process and back."""
MEMORY_OF_A_WORKER = 500 * 2**20


class JoinedEngine(SimulatedEngine):
    """This process, and workers that join it if there are cores for them and enough to do."""

    def __init__(self, clients: Clients, log: EventLog, others: int) -> None:
        self.clients = clients
        self.log = log
        self.others = others
        self.workers: WorkersEngine | None = None
        self._ready = Event()

    def close(self) -> None:
        if self.workers is not None:
            self.workers.close()

    def results(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Any]]:
        """Each job's result with its place, by whoever is there."""
        seconds = 0.0
        for place, job in enumerate(jobs):
            if self._ready.is_set() and self.workers is not None:
                rest = self.workers.results(jobs[place:], self.clients)
                yield from ((place + further, result) for further, result in rest)
                return
            began = time.perf_counter()
            result = job(self.clients, silence)
            seconds += time.perf_counter() - began
            yield place, result
            del result  # nothing is held here while the next clients work
            self._invite(jobs, place + 1, seconds / (place + 1))

    def _invite(self, jobs: Sequence[Job], done: int, seconds_each: float) -> None:
        """Start workers if what is left of the run is worth it."""
        if self.workers is not None or not self.others or seconds_each < WORTH_A_JOB:
            return
        left = seconds_each * (len(jobs) - done + (self.clients.rounds - jobs[0].round) * len(jobs))
        number = min(self.others, len(jobs) - 1, room_for_workers())
        if left < WORTH_SECONDS or number < 1:
            return
        if _is_bound_to_this_script(self.clients):
            self.others = 0
            return
        try:
            self.workers = WorkersEngine(self.clients, number, None, self.log, imports_script=False)
        except FedfuseError:  # no room in the shared memory
            self.others = 0
            return
        self.log.emit("workers_joined", round=jobs[0].round, workers=number, seconds_left=round(left, 1))
        Thread(target=self._await, daemon=True).start()

    def _await(self) -> None:
        if self.workers is not None and self.workers.started():
            self._ready.set()


def other_cores() -> int:
    """Cores that this process may use beside the one it is on; none where only other processes could use them, and
    there may be none."""
    if not may_have_others():
        return 0
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return allowed - 1


def room_for_workers() -> int:
    """How many workers fit into half of the memory that is free, where the system says how much that is."""
    free = free_memory()
    return other_cores() if free is None else free // 2 // MEMORY_OF_A_WORKER


def _is_bound_to_this_script(clients: Clients) -> bool:
    """Whether something of the experiment was written in the script itself, which workers would have to run again."""
    return b"__main__" in pack(clients).note
