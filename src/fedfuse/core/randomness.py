"""All randomness of a run, derived from (seed, round, client, purpose).

A :class:`Key` is an address, not a stream: asking twice for the generator of the same address gives the
same numbers, whatever else ran in between. That is what makes engines interchangeable and resume exact.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

Address = str | int


@dataclass(frozen=True)
class Key:
    """A seed and the path of purposes below it. The same address gives the same numbers, whoever asked before.

    >>> batches = fedfuse.Key(0).child("round", 3, "client", 5, "batches")
    >>> batches.number() == fedfuse.Key(0).child("round", 3, "client", 5, "batches").number()
    True
    """

    seed: int
    path: tuple[Address, ...] = ()

    def child(self, *parts: Address) -> Key:
        """The key of a narrower purpose."""
        return Key(self.seed, self.path + parts)

    def number(self) -> int:
        """63 bits that depend on every part of the address and on nothing else."""
        digest = hashlib.sha256(repr((self.seed, *self.path)).encode()).digest()
        return int.from_bytes(digest[:8], "little") >> 1

    def numpy(self) -> np.random.Generator:
        """A fresh numpy generator at this address."""
        return np.random.Generator(np.random.PCG64(self.number()))

    def torch(self) -> torch.Generator:
        """A fresh CPU torch generator at this address; results are moved to the device afterwards."""
        return torch.Generator().manual_seed(self.number())

    @contextmanager
    def default_generator(self) -> Iterator[None]:
        """Seed torch's default generators inside the block and give the caller's back afterwards.

        For code that cannot take a generator: parameter initialisation and ``nn.Dropout``.
        """
        devices = list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(self.number())
            yield
