"""Who holds what: each client's examples, copied out only while that client works."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from fedfuse.data.dataset import Examples, Selection
from fedfuse.data.partition.assignment import Assignment


class ClientDatasets(Mapping[int, Examples]):
    """A partition laid over one set of examples that stays in memory once."""

    def __init__(self, examples: Selection, assignment: Assignment) -> None:
        self.examples = examples
        # Two tensors for all clients: each is a file to worker processes.
        self._positions = torch.from_numpy(assignment.positions)
        self._ends = torch.from_numpy(assignment.ends)

    def size(self, client: int) -> int:
        """How many examples a client has."""
        return int(self._borders[client + 1] - self._borders[client])

    def __getitem__(self, client: int) -> Examples:
        if client not in range(len(self)):
            raise KeyError(client)
        start = self._ends[client - 1] if client else 0
        return self.examples.select(self._positions[start : self._ends[client]])

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __len__(self) -> int:
        return len(self._ends)
