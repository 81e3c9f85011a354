"""All randomness of a run, derived from (seed, round, client, purpose).

A :class:`Key` is an address, not a stream: asking twice for the generator of the same address gives the
same numbers, whatever else ran in between. That is what makes engines interchangeable and resume exact.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Self

import numpy as np
import torch
from torch import Tensor

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

    def child(self, *parts: Address) -> Self:
        """The key of a narrower purpose."""
        return type(self)(self.seed, self.path + parts)

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

    def noised(self, values: Tensor, deviation: float) -> Tensor:
        """The values with Gaussian noise of this standard deviation on each."""
        return values + deviation * torch.randn(values.shape, dtype=values.dtype, generator=self.torch())

    def sample(self, size: int, rate: float) -> Tensor:
        """Positions of ``range(size)`` in order, each of them there with this probability: a Poisson sample."""
        return (torch.rand(size, dtype=torch.float64, generator=self.torch()) < rate).nonzero().squeeze(1)

    def default_generator(self) -> AbstractContextManager[None]:
        """Seed torch's default generators inside the block and give the caller's back afterwards.

        For code that cannot take a generator: parameter initialisation and ``nn.Dropout``.
        """
        return _seeded_everywhere(self.number()) if _has_accelerator() else _seeded_cpu(self.number())


@cache
def _has_accelerator() -> bool:
    return torch.cuda.is_available() or torch.backends.mps.is_available() or torch.xpu.is_available()


@contextmanager
def _seeded_cpu(number: int) -> Iterator[None]:
    """torch.manual_seed would format the call stack once for each kind of accelerator that is not there."""
    generator = torch.default_generator
    before = generator.get_state()
    generator.manual_seed(number)
    try:
        yield
    finally:
        generator.set_state(before)


@contextmanager
def _seeded_everywhere(number: int) -> Iterator[None]:
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(number)
        yield
