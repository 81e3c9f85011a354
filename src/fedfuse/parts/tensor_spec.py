"""What a tensor from elsewhere must be before anybody computes with it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Self

import torch
from torch import Tensor

from fedfuse.core.weights import LOOKED_AT_ONCE

LARGEST = 1e15
"""No training ends with larger numbers: the squares of a hundred million of them still have a sum in float32."""
MOST_EXAMPLES = 10**12
"""No client has more examples, of one class or of all."""


class TensorSpec(tuple[int, ...]):
    """The shape of a tensor that a message brings, its type, and the range of its numbers.

    A plain tuple in its place stands for float32. Where no range is given, floats are finite and at most 1e15.

    >>> fedfuse.TensorSpec((3,), least=0).fault(torch.tensor([1.0, -2.0, 0.5]))
    'below 0'
    >>> fedfuse.TensorSpec((2,), torch.uint8).fault(torch.zeros(2))
    'float32, expected uint8'
    """

    dtype: torch.dtype
    least: float
    most: float

    def __new__(
        cls,
        shape: Iterable[int],
        dtype: torch.dtype = torch.float32,
        least: float | None = None,
        most: float | None = None,
    ) -> Self:
        spec = super().__new__(cls, shape)
        widest = LARGEST if dtype.is_floating_point else math.inf
        spec.dtype = dtype
        spec.least = -widest if least is None else least
        spec.most = widest if most is None else most
        return spec

    @staticmethod
    def of(shape: tuple[int, ...]) -> TensorSpec:
        """The same with all that a plain tuple leaves unsaid."""
        return shape if isinstance(shape, TensorSpec) else TensorSpec(shape)

    def resized(self, shape: Iterable[int]) -> TensorSpec:
        """Numbers like these in another shape."""
        return TensorSpec(shape, self.dtype, self.least, self.most)

    def retyped(self, dtype: torch.dtype) -> TensorSpec:
        """Numbers like these in another type."""
        return TensorSpec(self, dtype, self.least, self.most)

    def fault(self, tensor: Tensor) -> str | None:
        """What a tensor is that it should not be, or None."""
        if tensor.dtype != self.dtype:
            return f"{_name(tensor.dtype)}, expected {_name(self.dtype)}"
        if tensor.shape != tuple(self):
            return f"of another shape than {tuple(self)}"
        return self._out_of_range(tensor) if tensor.dtype.is_floating_point or self._is_bounded else None

    @property
    def _is_bounded(self) -> bool:
        return math.isfinite(self.least) or math.isfinite(self.most)

    def _out_of_range(self, tensor: Tensor) -> str | None:
        """Looked at piece by piece; a number that is not finite is in no range."""
        for piece in tensor.reshape(-1).split(LOOKED_AT_ONCE):
            if not len(piece):
                continue
            low, high = (float(end) for end in torch.aminmax(piece))
            if self.least <= low and high <= self.most:
                continue
            if not bool(piece.isfinite().all()):
                return "not finite"
            return f"below {self.least:g}" if low < self.least else f"above {self.most:g}"
        return None


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
