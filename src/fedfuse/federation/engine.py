"""What an engine is: it takes Tasks and yields Updates. No method knows which engine runs it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.federation.state import ClientStates


class Engine(Protocol):
    """Where clients run."""

    def train(self, tasks: Sequence[Task], states: ClientStates) -> Iterator[tuple[Update, Tensors]]:
        """Let the clients work, and yield each update with the client's new state, in any order."""

    def close(self) -> None:
        """Release whatever the engine holds."""
