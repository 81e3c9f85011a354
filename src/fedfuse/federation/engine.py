"""What an engine (a simulation backend) is: it takes Tasks and yields Updates. No method knows which engine runs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedfuse.core.errors import FedfuseError
from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.federation.client_states import ClientStates
from fedfuse.runtime.pool import IN_PROCESS, Pool

Residues = NDArray[np.unsignedinteger[Any]]
"""Whole numbers modulo 2^32 or 2^64."""


class QuorumError(FedfuseError):
    """Too few updates of a round were sound; the finished rounds are kept."""


class WithheldError(FedfuseError):
    """The sum of what clients sent cannot be looked at."""


@dataclass(frozen=True)
class Missed:
    """Why a client's task has no update: it was not sent, not answered in time, or answered with nothing to inspect."""

    word: Literal["absent", "late", "refused"]
    reason: str


class Engine(ABC):
    """Where clients run, and who does the server's heavy work."""

    keeps_secrets: bool = False
    """Whether clients' noise comes from secrets of theirs, where privacy is promised, and not from the seed."""
    quorum: float = 0.0
    """Of a round's clients, the share whose updates must be sound for the run to go on."""

    def announced(self, clients: Collection[int]) -> Mapping[int, str]:
        """The models that these clients say they run, as far as they are there: real parties choose for themselves."""
        return {}

    @abstractmethod
    def train(self, tasks: Sequence[Task], states: ClientStates) -> Iterator[tuple[Update, Tensors]]:
        """Let the clients work, and yield each update with the client's new state, in any order.

        The engine vouches that an update's ``client`` is the one that was given the task; all else is inspected.
        """

    def missed(self) -> Mapping[int, Missed]:
        """Whose tasks have no update, of those that were trained last, and why, as far as the engine knows."""
        return {}

    def news(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        """Events for the log since it was asked last, each by its name and fields."""
        return ()

    def examples_of(self, tasks: Sequence[Task]) -> Sequence[int] | None:
        """How many examples each task's update will stand for, if that is known and the tasks can be done once more.

        The server then forgets updates as they come. Should one be refused, it asks for the others again.
        """
        return None

    def masks_of(self, clients: Sequence[int], like: Residues) -> Residues | None:
        """The sum of the masks that hide what these clients sent last, all of whom are in one sum; None: none do.

        They are as many numbers as the sum has, and as wide. A WithheldError says why nobody can find them out.
        """
        return None

    def pool(self, number: int) -> Pool:
        """Who asks teachers and distils in this round: the process that runs the round."""
        return IN_PROCESS

    @abstractmethod
    def close(self) -> None:
        """Release whatever the engine holds."""
