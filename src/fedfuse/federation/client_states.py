"""What clients keep between their visits: the second value of a snapshot."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping

from fedfuse.core.messages import Tensors


class ClientStates(Mapping[int, Tensors]):
    """The states of all clients that have one, after some round."""

    @abstractmethod
    def after(self, number: int, changed: Iterable[tuple[int, Tensors]]) -> ClientStates:
        """The states after round ``number``, of which these are new; an empty one is forgotten."""


class HeldStates(ClientStates):
    """States in memory."""

    def __init__(self, states: Mapping[int, Tensors] | None = None) -> None:
        self._states = dict(states or {})

    def after(self, number: int, changed: Iterable[tuple[int, Tensors]]) -> HeldStates:
        states = {**self._states, **dict(changed)}
        return HeldStates({client: state for client, state in states.items() if state})

    def __getitem__(self, client: int) -> Tensors:
        return self._states[client]

    def __iter__(self) -> Iterator[int]:
        return iter(self._states)

    def __len__(self) -> int:
        return len(self._states)
