"""Jobs on Ray: no more under way than fit, and whatever is lost with its process or machine is given out again."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field
from torch import Tensor

from fedfuse.core.part import Settings
from fedfuse.engines.jobs import ATTEMPTS, Job, exhausted
from fedfuse.engines.packing import SharedTensors, unpack
from fedfuse.engines.ray.process import copied
from fedfuse.engines.ray.progress import PACE, ProgressQueue
from fedfuse.federation.events import EventLog
from fedfuse.runtime.pool import Progress


class Resources(Settings):
    """What Ray sets aside for one job."""

    cpus: float = Field(1.0, gt=0, description="CPUs that Ray sets aside")
    gpus: float = Field(0.0, ge=0, description="GPUs; 0.5 puts two on each. With compute.device: cuda")
    memory: int | None = Field(None, ge=1, description="bytes of memory that Ray sets aside")
    timeout: float | None = Field(None, gt=0, description="seconds after which it is tried anew")

    @property
    def wanted(self) -> dict[str, float]:
        """In Ray's words."""
        amounts = {"CPU": self.cpus, "GPU": self.gpus, "memory": self.memory or 0}
        return {name: amount for name, amount in amounts.items() if amount}


@dataclass(frozen=True)
class RayPool:
    """Ray processes with the same resources, and room for so many of them."""

    ray: Any
    work: Any
    """The remote function."""
    resources: Resources
    room: int
    clients: Any
    """Where the object store has the package of the clients."""
    lasting: Sequence[Tensor]
    """The tensors of that package."""
    log: EventLog

    def alone(self, job: Job, ticks: ProgressQueue, progress: Progress) -> Any:
        """One job's result, and its progress until then."""
        [(_, result)] = self.results([job], ticks.queue, lambda: ticks.pass_on(progress))
        return result

    def results(
        self, jobs: Sequence[Job], queue: Any | None = None, pulse: Callable[[], None] | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Each job's result with its place, as they come; ``pulse`` is called now and then."""
        shared = SharedTensors(jobs, self.lasting)
        common = self.ray.put(shared.common())
        wanted = self.resources
        call = self.work.options(num_cpus=wanted.cpus, num_gpus=wanted.gpus, memory=wanted.memory)
        waiting, running = deque(range(len(jobs))), dict[Any, tuple[int, float]]()
        attempts: Counter[int] = Counter()
        try:
            while waiting or running:
                while waiting and len(running) < self.room:
                    place = waiting.popleft()
                    reference = call.remote([self.clients], [common], shared.packed(jobs[place]), queue)
                    running[reference] = (place, time.monotonic())
                over = self._over(running, PACE if pulse else None)
                if pulse:
                    pulse()
                for reference in over:
                    place, since = running.pop(reference)
                    try:
                        result = self._result(reference, since)
                    except _LostError as lost:
                        attempts[place] += 1
                        if attempts[place] == ATTEMPTS:
                            raise exhausted(jobs[place], ATTEMPTS, str(lost)) from None
                        jobs[place].retried(self.log, str(lost))
                        waiting.append(place)
                    else:
                        yield place, result
        finally:
            for reference in running:
                self.ray.cancel(reference, force=True)

    def _over(self, running: dict[Any, tuple[int, float]], patience: float | None) -> list[Any]:
        """Tasks that are done, or else those that are late; perhaps none after ``patience`` seconds."""
        timeout = self.resources.timeout
        if timeout is not None:
            left = max(0.0, min(since for _, since in running.values()) + timeout - time.monotonic())
            patience = left if patience is None else min(left, patience)
        done, _ = self.ray.wait(list(running), timeout=patience)
        if done or timeout is None:
            return list(done)
        return [r for r, (_, since) in running.items() if time.monotonic() - since >= timeout]

    def _result(self, reference: Any, since: float) -> Any:
        """What came of a task; an error of the job's own is raised here as it was there."""
        try:
            packed = self.ray.get(reference, timeout=0 if self.resources.timeout else None)
        except self.ray.exceptions.GetTimeoutError:
            self.ray.cancel(reference, force=True)
            raise _LostError(f"it gave no answer in {time.monotonic() - since:.0f} s") from None
        except self.ray.exceptions.RayError as error:
            raise _LostError(f"Ray lost it ({type(error).__name__})") from None
        result = unpack(copied(packed))
        if isinstance(result, Exception):
            raise result
        return result


class _LostError(Exception):
    """A task has no result; the text says why."""
