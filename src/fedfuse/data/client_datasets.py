"""Who holds what: each client's examples, copied out only while that client works."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch

from fedfuse.data.dataset import Examples


class ClientDatasets(Mapping[int, Examples]):
    """A partition laid over one set of examples that stays in memory once."""

    def __init__(self, examples: Examples, assignment: Sequence[np.ndarray[tuple[int], np.dtype[np.int64]]]) -> None:
        self.examples = examples
        self._indices = torch.from_numpy(np.concatenate(assignment))  # one tensor: each is a file to worker processes
        self._ends = np.cumsum([0, *map(len, assignment)]).tolist()

    def __getitem__(self, client: int) -> Examples:
        return self.examples.select(self._indices[self._ends[client] : self._ends[client + 1]])

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __len__(self) -> int:
        return len(self._ends) - 1
