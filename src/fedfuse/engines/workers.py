"""Local clients in several worker processes, each with one client at a time; a lost worker is replaced.

One thread of this process waits for each worker, so that a task is packed when somebody is free for it and not earlier.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from queue import SimpleQueue

from fedfuse.core.errors import FedfuseError
from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.engines.parcels import Cargo
from fedfuse.engines.worker import LostError, Worker
from fedfuse.federation.events import EventLog
from fedfuse.federation.state import ClientStates
from fedfuse.local import Clients

ATTEMPTS = 3
"""How often a client is tried before the run stops."""


class WorkersEngine:
    """Clients in worker processes that live as long as the engine."""

    def __init__(self, clients: Clients, workers: int, timeout: float | None, log: EventLog) -> None:
        self.workers = [Worker(clients) for _ in range(workers)]
        self.timeout = timeout
        self.log = log
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        for worker in self.workers:
            self._idle.put(worker)
        self._starting = threading.Lock()
        self._round: Cargo | None = None
        self._threads: ThreadPoolExecutor | None = None

    def train(self, tasks: Sequence[Task], states: ClientStates) -> Iterator[tuple[Update, Tensors]]:
        cargo = self._round = Cargo(tasks, states)
        threads = self._threads = ThreadPoolExecutor(len(self.workers))
        try:
            for done in as_completed([threads.submit(self._train, cargo, task) for task in tasks]):
                (update, state), losses = done.result()
                for reason in losses:
                    self.log.emit("client_retried", round=update.round, client=update.client, reason=reason)
                yield update, state
            threads.shutdown()
        except BaseException:
            if self._round is cargo:
                self.close()
            raise

    def close(self) -> None:
        """End all workers, also in the middle of a round."""
        with self._starting:
            self._round = None
            for worker in self.workers:
                worker.kill()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        for worker in self.workers:
            worker.end()

    def _train(self, cargo: Cargo, task: Task) -> tuple[tuple[Update, Tensors], list[str]]:
        """The client's answer, and how the workers ended that were lost on the way to it."""
        losses: list[str] = []
        while len(losses) < ATTEMPTS:
            worker = self._idle.get()
            try:
                with self._starting:
                    if self._round is not cargo:
                        raise FedfuseError("the engine was closed")
                    worker.start()
                return worker.ask(cargo, task, self.timeout), losses
            except LostError as lost:
                losses.append(f"its worker {lost}")
            finally:
                self._idle.put(worker)
        raise exhausted(task, losses[-1])


def exhausted(task: Task, reason: str) -> FedfuseError:
    """The end of a run whose client nobody can train."""
    return FedfuseError(
        f"client {task.client} was tried {ATTEMPTS} times in round {task.round}, but {reason}; finished rounds are "
        "kept, mend that (memory, engine.timeout, a script without `if __name__ == '__main__'`) and go on with --resume"
    )
