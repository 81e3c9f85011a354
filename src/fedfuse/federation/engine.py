"""What an engine (a simulation backend) is: it takes Tasks and yields Updates. No method knows which engine runs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.federation.client_states import ClientStates
from fedfuse.runtime.pool import IN_PROCESS, Pool


class Engine(ABC):
    """Where clients run, and who does the server's heavy work."""

    @abstractmethod
    def train(self, tasks: Sequence[Task], states: ClientStates) -> Iterator[tuple[Update, Tensors]]:
        """Let the clients work, and yield each update with the client's new state, in any order.

        The engine vouches that an update's ``client`` is the one that was given the task; all else is inspected.
        """

    def examples_of(self, tasks: Sequence[Task]) -> Sequence[int] | None:
        """How many examples each task's update will stand for, if that is known and the tasks can be done once more.

        The server then forgets updates as they come. Should one be refused, it asks for the others again.
        """
        return None

    def pool(self, number: int) -> Pool:
        """Who asks teachers and distils in this round: the process that runs the round."""
        return IN_PROCESS

    @abstractmethod
    def close(self) -> None:
        """Release whatever the engine holds."""
