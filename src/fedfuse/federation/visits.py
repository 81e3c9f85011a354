"""How often each client was heard. The history says so already; it is counted once, and then on from round to round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from fedfuse.federation.state import RoundRecord


class Visits(Mapping[int, int]):
    """The visits of every client up to the end of a history. Those who were never heard take no room."""

    def __init__(self, clients: int) -> None:
        self._clients = clients
        self._counts: Counter[int] = Counter()
        self._rounds = 0
        self._last: RoundRecord | None = None

    def __getitem__(self, client: int) -> int:
        if client not in range(self._clients):
            raise KeyError(client)
        return self._counts[client]

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._clients))

    def __len__(self) -> int:
        return self._clients

    def after(self, history: Sequence[RoundRecord]) -> Visits:
        """Itself, once it has counted all of this history and nothing else."""
        if not self._is_beginning_of(history):
            self._counts, self._rounds = Counter(), 0
        for record in history[self._rounds :]:
            self._counts.update(record.heard)
            self._rounds, self._last = self._rounds + 1, record
        return self

    def _is_beginning_of(self, history: Sequence[RoundRecord]) -> bool:
        """Whether it has counted this history so far, and not another one, such as the end of a round played twice."""
        return not self._rounds or (self._rounds <= len(history) and history[self._rounds - 1] is self._last)
