"""Who holds what: each client's examples, copied out only while that client works."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch

from fedfuse.data.dataset import Examples


class Holdings(Mapping[int, Examples]):
    """A partition laid over one set of examples that stays in memory once."""

    def __init__(self, examples: Examples, assignment: Sequence[np.ndarray[tuple[int], np.dtype[np.int64]]]) -> None:
        self.examples = examples
        self.assignment = [torch.from_numpy(indices) for indices in assignment]

    def __getitem__(self, client: int) -> Examples:
        return self.examples.select(self.assignment[client])

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.assignment)))

    def __len__(self) -> int:
        return len(self.assignment)
