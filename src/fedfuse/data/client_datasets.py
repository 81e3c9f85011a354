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

    def __getitem__(self, client: int) -> Examples:
        if client not in range(len(self)):
            raise KeyError(client)
        start, end = self._borders(client)
        return self.examples.select(self._positions[start:end])

    def size(self, client: int) -> int:
        """How many examples a client has."""
        start, end = self._borders(client)
        return end - start

    def _borders(self, client: int) -> tuple[int, int]:
        """Where a client's positions begin and end."""
        ends = self._ends.numpy()  # far cheaper to look into than a tensor
        return int(ends[client - 1]) if client else 0, int(ends[client])

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __len__(self) -> int:
        return len(self._ends)
