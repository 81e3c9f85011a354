"""Updates that a round has to hold until its end: in memory as long as they are few, and the rest in a file.

So a round needs the same memory for any number of clients, also where a fusion or a screen looks at all of them. They
are read back one by one, by whoever asks; the file has no name and is gone with the round, however that ends.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor

from fedfuse.core.messages import Update
from fedfuse.core.weights import DistantWeights, Layout, Weights

IN_MEMORY = 2**27
"""Bytes of weights that are held in memory: reading them back takes a while, and small ones are many."""

AT_ONCE = 2**30
"""Bytes that are read at a time: no system gives more than two of these."""


class Shelf:
    """Where one round's updates lie, or the models of a fusion."""

    def __init__(self, folder: Path | None) -> None:
        """``folder`` has room for the file; None: the system's place for such files."""
        self.folder = folder
        self._bytes = 0
        self._file: BinaryIO | None = None

    def hold(self, update: Update) -> Update:
        """The update, perhaps with weights that are far away."""
        return replace(update, weights=self.keep(update.weights))

    def keep(self, weights: Weights) -> Weights:
        """The weights, perhaps far away."""
        self._bytes += weights.nbytes
        return weights if self._bytes <= IN_MEMORY else self._put_away(weights)

    def _put_away(self, weights: Weights) -> Weights:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115
        offset = self._file.seek(0, os.SEEK_END)
        self._file.write(weights.flat.contiguous().numpy().data)
        self._file.flush()
        return ShelvedWeights(self._file, offset, weights.flat.dtype, weights.layout)


class ShelvedWeights(DistantWeights):
    """Weights in a file."""

    def __init__(self, file: BinaryIO, offset: int, dtype: torch.dtype, layout: Layout) -> None:
        super().__init__(dtype, layout)
        self._file, self._offset = file, offset

    def read(self) -> Tensor:
        return self.between(0, self.layout.size)

    def between(self, begin: int, end: int) -> Tensor:
        """Nothing but these numbers is read."""
        content = bytearray((end - begin) * self.dtype.itemsize)
        left, place = memoryview(content), self._offset + begin * self.dtype.itemsize
        while len(left):
            read = os.preadv(self._file.fileno(), [left[:AT_ONCE]], place)
            if not read:
                raise OSError("the file of weights that were put away ends too early")
            left, place = left[read:], place + read
        return torch.frombuffer(content, dtype=self.dtype)
