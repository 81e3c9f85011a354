"""What a round asks of whoever counts privacy: who may still take part, and what the round has cost.

The books are kept as a memory of the server, so that they are in the checkpoint and go on where the run does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedfuse.core.messages import Tensors

BOOKS = "privacy"
"""Where the server remembers them."""


@dataclass(frozen=True)
class Attended:
    """One client that was sent a task in a round, and may have answered."""

    round: int
    client: int
    prototype: str
    is_asked: bool
    """Whether it was to say how much its answers count."""
    examples: int | None = None
    """As it said; None if it was not heard."""
    is_counted: bool = True
    """Whether its update is in what the server makes of all of them."""
    parties: int | None = None
    """How many clients of its model it was told to share noise with, itself included; None: those that attended."""


@dataclass(frozen=True)
class PrivacyRecord:
    """What all rounds so far have cost the client that they cost most."""

    epsilon: float | None
    """None: more than can be counted."""
    client: int | None = None
    server: float | None = None
    """Towards the server, where that is another number."""
    left: int | None = None
    """How many clients have budget for another round; None without a budget."""


class Accounting(ABC):
    """The accountant of one run."""

    @abstractmethod
    def spent(self, books: Tensors, clients: Collection[int]) -> set[int]:
        """Of these clients, those that have no budget left for another round."""

    @abstractmethod
    def objection(self, books: Tensors, attended: Sequence[Attended]) -> str | None:
        """Why what the clients sent must not be put together: too many are missing to hide the others."""

    @abstractmethod
    def after(self, books: Tensors, attended: Sequence[Attended]) -> Tensors:
        """The books with one more round."""

    @abstractmethod
    def record(self, books: Tensors) -> PrivacyRecord:
        """For the round's record."""

    @abstractmethod
    def report(self, books: Tensors) -> Mapping[str, Any]:
        """For the run's summary: every client's own number."""
