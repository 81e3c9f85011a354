"""Local clients in several worker processes, each with one job at a time; a lost worker is replaced.

Between two trainings, the workers ask the fusion's teachers. One thread of this process waits for each worker, so that
a job is packed when somebody is free for it and not earlier.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from queue import SimpleQueue
from typing import Any

from fedfuse.core.errors import FedfuseError
from fedfuse.engines.base import SimulatedEngine
from fedfuse.engines.jobs import ATTEMPTS, Job, exhausted
from fedfuse.engines.packing import SharedTensors, pack, tensors_in
from fedfuse.engines.worker import LostError, Worker, in_shared_memory
from fedfuse.federation.client import Clients
from fedfuse.federation.events import EventLog
from fedfuse.runtime.pool import silence

Done = tuple[Any, list[str]]
"""What came of a job, and how the workers ended that were lost on the way to it."""
Places = dict[Future[Done], int]

AHEAD = 8
"""Jobs per worker that are begun, or done, before somebody asks for their results: work for the time in between, and a
bound on what is held."""


class WorkersEngine(SimulatedEngine):
    """Clients in worker processes that live as long as the engine."""

    def __init__(
        self, clients: Clients, workers: int, timeout: float | None, log: EventLog, imports_script: bool = True
    ) -> None:
        self.clients = clients
        self._lasting = in_shared_memory(tensors_in(clients))
        packed = pack(clients, lasting=self._lasting).note
        self.workers = [Worker(packed, self._lasting, imports_script) for _ in range(workers)]
        self.timeout = timeout
        self.log = log
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        for worker in self.workers:
            self._idle.put(worker)
        self._starting = threading.Lock()
        self._closed = False
        self._under_way: SharedTensors | None = None
        self._threads: ThreadPoolExecutor | None = None

    def close(self) -> None:
        """End all workers, also in the middle of a round."""
        with self._starting:
            self._closed, self._under_way = True, None
            for worker in self.workers:
                worker.kill()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
            self._threads = None
        for worker in self.workers:
            worker.end()

    def started(self) -> bool:
        """Start all workers and wait until they are ready; False if one could not be, or the engine was closed."""
        try:
            for worker in self.workers:
                with self._starting:
                    if self._closed:
                        return False
                    worker.start()
            for worker in self.workers:
                worker.await_ready()
        except (EOFError, OSError, FedfuseError):
            return False
        return True

    def results(self, jobs: Sequence[Job], helped_by: Clients | None = None) -> Iterator[tuple[int, Any]]:
        """Each job's result with its place, as they come; clients that help are played by this process itself.

        Workers begin some jobs before their results are asked for. This process helps only while it is asked for one.
        """
        shared = self._under_way = SharedTensors(jobs, self._lasting)
        threads = self._threads = self._threads or ThreadPoolExecutor(len(self.workers))
        waiting, places = deque(range(len(jobs))), Places()
        try:
            while waiting or places:
                while waiting and len(places) < AHEAD * len(self.workers):
                    place = waiting.popleft()
                    places[threads.submit(self._do, shared, jobs[place])] = place
                mine = None if helped_by is None else _not_begun(places)
                if helped_by is None or mine is None:
                    yield self._came(next(as_completed(places)), jobs, places)
                else:
                    yield mine, jobs[mine](helped_by, silence)
        except GeneratorExit:
            for unwanted in places:
                unwanted.cancel()  # those under way end by themselves, and their workers are free again
            raise
        except BaseException:
            if self._under_way is shared:
                self.close()
            raise

    def _came(self, done: Future[Done], jobs: Sequence[Job], places: Places) -> tuple[int, Any]:
        """A worker's result with its place, and nothing that holds on to it."""
        place = places.pop(done)
        result, losses = done.result()
        for reason in losses:
            jobs[place].retried(self.log, reason)
        return place, result

    def _do(self, shared: SharedTensors, job: Job) -> Done:
        """What came of the job, and how the workers ended that were lost on the way to it."""
        losses: list[str] = []
        while len(losses) < ATTEMPTS:
            worker = self._idle.get()
            try:
                with self._starting:
                    if self._under_way is not shared:
                        raise FedfuseError("the engine was closed")
                    worker.start()
                return worker.ask(shared, job, self.timeout), losses
            except LostError as lost:
                losses.append(f"its worker {lost}")
            finally:
                self._idle.put(worker)
        raise exhausted(job, len(losses), losses[-1])


def _not_begun(places: Places) -> int | None:
    """The place of a job that is taken from the workers before one of them begins it; None if a result is there."""
    if any(future.done() for future in places):
        return None
    first = next((future for future in places if future.cancel()), None)
    return None if first is None else places.pop(first)
