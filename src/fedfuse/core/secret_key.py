"""Randomness that nobody else can compute: what a party's privacy rests on.

A :class:`Key` of an experiment is known to all who know its seed, and torch's generators are not made to withstand
somebody who wants to guess them. A secret key has 256 bits of the operating system, is never written down or sent, and
its numbers come from SHAKE-128, so that those that become known tell nothing about the others.

Gaussian noise in floating point has holes that can betray what it was added to (Mironov, 2012). Each number is half the
sum of four therefore (Holohan and Braghin, 2021), made and added in double precision and rounded once. That closes the
attacks that were shown; it is no proof, which only noise on whole numbers has.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from fedfuse.core.randomness import Key

DRAWS = 4
"""Gaussian numbers whose sum is one number of noise."""
PIECE = 1 << 18
"""Numbers that are made at a time."""


@dataclass(frozen=True)
class SecretKey(Key):
    """A key whose seed is a secret. It shows it to nobody by accident."""

    seed: int = field(repr=False)

    @classmethod
    def fresh(cls) -> Self:
        """One that never was and never will be again."""
        return cls(secrets.randbits(256))

    def noised(self, values: torch.Tensor, deviation: float) -> torch.Tensor:
        flat = values.detach().cpu().double().reshape(-1)
        pieces = [piece + deviation * self._normal(len(piece), place) for place, piece in enumerate(flat.split(PIECE))]
        noised = torch.cat(pieces) if pieces else flat
        return noised.reshape(values.shape).to(values.device, values.dtype)

    def sample(self, size: int, rate: float) -> torch.Tensor:
        return torch.from_numpy(np.flatnonzero(self.child("sample")._uniform(size) < rate))

    def _normal(self, size: int, place: int) -> torch.Tensor:
        from scipy.special import ndtri  # scipy takes a while to import, and most keys are no secrets

        draws = ndtri(self.child("noise", place)._uniform(DRAWS * size)).reshape(DRAWS, size)
        return torch.from_numpy(draws.sum(axis=0) / math.sqrt(DRAWS))

    def _uniform(self, size: int) -> NDArray[np.float64]:
        """Numbers between 0 and 1, both excluded, of 53 bits each."""
        stream = hashlib.shake_128(repr((self.seed, *self.path)).encode()).digest(8 * size)
        return ((np.frombuffer(stream, dtype="<u8") >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
