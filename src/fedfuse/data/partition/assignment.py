"""Who has which examples, as two arrays: all positions, client after client, and where those of each client end."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


class Assignment(Sequence[Indices]):
    """For every client the positions of its examples; no object per client, so that there may be a million."""

    def __init__(self, positions: Indices, ends: Indices) -> None:
        self.positions = positions
        self.ends = ends

    @staticmethod
    def of(parts: Sequence[Indices]) -> Assignment:
        """What a partition gave, whatever sequence it is."""
        if isinstance(parts, Assignment):
            return parts
        sizes = np.fromiter(map(len, parts), np.int64, len(parts))
        held = [part for part in parts if len(part)]
        positions = np.concatenate(held, dtype=np.int64, casting="same_kind") if held else np.empty(0, np.int64)
        return Assignment(positions, np.cumsum(sizes))

    @staticmethod
    def evenly(positions: Indices, clients: int) -> Assignment:
        """Cut into shares of equal size, the first ones larger by one if need be."""
        least, larger = divmod(len(positions), clients)
        number = np.arange(1, clients + 1)
        return Assignment(positions, number * least + np.minimum(number, larger))

    @overload
    def __getitem__(self, client: int) -> Indices: ...
    @overload
    def __getitem__(self, client: slice) -> list[Indices]: ...
    def __getitem__(self, client: int | slice) -> Indices | list[Indices]:
        if isinstance(client, slice):
            return [self[one] for one in range(len(self))[client]]
        return self.positions[self.where(range(len(self))[client])]

    def __len__(self) -> int:
        return len(self.ends)

    def where(self, client: int) -> slice:
        """Where a client's own lie among those of all clients."""
        return slice(int(self.ends[client - 1]) if client else 0, int(self.ends[client]))

    @property
    def sizes(self) -> Indices:
        return np.diff(self.ends, prepend=0)

    def for_each_position(self, of_clients: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of one number per client, that of whoever has it for every position."""
        return np.repeat(of_clients, self.sizes)

    def sorted(self) -> Assignment:
        """The same with every client's positions in ascending order."""
        beyond = int(self.positions.max(initial=0)) + 1
        keys = self.for_each_position(np.arange(len(self)) * beyond)  # one sort for all, since clients stay in order
        keys += self.positions
        keys.sort()
        keys %= beyond
        return Assignment(keys, self.ends)

    def sha256(self) -> str:
        """A hash of who got what; sizes go in first, so moving an example to the next client changes it."""
        digest = hashlib.sha256(np.ascontiguousarray(self.sizes, dtype="<i8").data)
        digest.update(np.ascontiguousarray(self.positions, dtype="<i8").data)
        return digest.hexdigest()
