"""What a process of an engine can be given to do: a client's training, or a piece of the server's heavy work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from fedfuse.core.errors import FedfuseError
from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.federation.client import Clients
from fedfuse.federation.client_states import ClientStates, HeldStates
from fedfuse.federation.events import EventLog
from fedfuse.runtime.pool import Item, Pool, Progress, Result, in_order

ATTEMPTS = 3
"""How often a job is tried before the run stops."""


class Job(Protocol):
    """Something that can be done in any process, and again if that process is lost."""

    @property
    def round(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def common(self) -> Any:
        """What it may have in common with other jobs."""

    def __call__(self, clients: Clients, progress: Progress) -> Any:
        """Do it, with the clients that the process can play."""

    def retried(self, log: EventLog, reason: str) -> None:
        """Say that it is done anew."""


@dataclass(frozen=True)
class Training:
    """The tasks of a group of clients, mostly of one, and the states in which there is what they remember.

    It is read when it is needed.
    """

    tasks: Sequence[Task]
    states: ClientStates

    def __reduce__(self) -> tuple[type[Training], tuple[Sequence[Task], ClientStates]]:
        """Of all states, the clients' own travel."""
        own = {task.client: self.states.get(task.client, {}) for task in self.tasks}
        return Training, (self.tasks, HeldStates(own))

    @property
    def common(self) -> Sequence[Task]:
        return self.tasks

    @property
    def round(self) -> int:
        return self.tasks[0].round

    @property
    def name(self) -> str:
        numbers = ", ".join(str(task.client) for task in self.tasks)
        return f"client {numbers}" if len(self.tasks) == 1 else f"clients {numbers}"

    def __call__(self, clients: Clients, progress: Progress) -> list[tuple[Update, Tensors]]:
        return clients.work_together(self.tasks, self.states)

    def retried(self, log: EventLog, reason: str) -> None:
        for task in self.tasks:
            log.emit("client_retried", round=self.round, client=task.client, reason=reason)


def trainings(clients: Clients, tasks: Sequence[Task], states: ClientStates) -> list[Training]:
    """A round's tasks in jobs."""
    return [Training(group, states) for group in clients.groups(tasks)]


@dataclass(frozen=True)
class ServerJob:
    """A piece of the server's work."""

    round: int
    name: str
    work: Callable[[Progress], Any]

    @property
    def common(self) -> Callable[[Progress], Any]:
        return self.work

    def __call__(self, clients: Clients, progress: Progress) -> Any:
        return self.work(progress)

    def retried(self, log: EventLog, reason: str) -> None:
        log.emit("work_retried", round=self.round, what=self.name, reason=reason)


class WorkerPool(Pool):
    """An engine's processes, for the server's work in one round.

    ``many`` does jobs side by side and yields each result with its job's place; ``alone`` does one that tells its
    progress, in this process if there is none.
    """

    def __init__(
        self,
        number: int,
        many: Callable[[Sequence[Job]], Iterator[tuple[int, Any]]],
        alone: Callable[[Job, Progress], Any] | None = None,
    ) -> None:
        self.number, self.many, self.alone = number, many, alone

    def map(self, what: str, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        pieces = [partial(_to, item, work) for item in items]
        return self.many([ServerJob(self.number, f"{what} {place}", piece) for place, piece in enumerate(pieces)])

    def run(self, what: str, work: Callable[[Progress], Result], progress: Progress) -> Result:
        if self.alone is None:
            return work(progress)
        return self.alone(ServerJob(self.number, what, work), progress)  # type: ignore[no-any-return]

    def each(self, what: str, works: Sequence[Callable[[Progress], Result]], progress: Progress) -> list[Result]:
        if self.alone is not None or len(works) == 1:
            return super().each(what, works, progress)
        results = []
        for result in in_order(self.many([ServerJob(self.number, what, work) for work in works])):
            results.append(result)
            progress(what, len(results), len(works))
        return results


def _to(item: Item, work: Callable[[Item], Result], _progress: Progress) -> Result:
    return work(item)


def exhausted(job: Job, attempts: int, reason: str) -> FedfuseError:
    """The end of a run with a job that nobody can do."""
    return FedfuseError(
        f"{job.name} was tried {attempts} times in round {job.round}, but {reason}; finished rounds are "
        "kept, mend that (memory, a timeout, a script without `if __name__ == '__main__'`) and go on with --resume"
    )
