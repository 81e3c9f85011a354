"""Numbers that are finite and still no model: one update of 1e30 in a mean, and nobody can train from it any more.

How large weights are is the root of their parameters' mean square, and how much they have grown is told from those that
the server had before the round. Training hardly changes it, however different the clients are; so the bounds are far
from anything that a round does which learns something. They keep a federation alive, not its accuracy: who stays below
them can still spoil a mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median_low

import torch
from torch import Tensor

from fedfuse.core.messages import Tensors, Update
from fedfuse.core.weights import Weights

APART = 100.0
"""An update that has grown so many times more than the median of its round is refused."""
BEYOND = 1e4
"""A model of the server that has grown so many times in one round does not become the next round's."""
LEAST = 0.01
"""Weights smaller than this count as this large, so that a network may begin with zeros."""


class Growth:
    """How much the weights of one round have grown."""

    def __init__(self, before: Mapping[str, Weights]) -> None:
        """``before`` are the server's weights when the round begins."""
        self._before = before
        self._sizes: dict[str, float] = {}
        self._brought: dict[str, dict[int, float]] = {}

    def of(self, prototype: str, weights: Weights) -> float:
        """How many times as large as before; infinite if a square is no number any more."""
        if prototype not in self._sizes:
            self._sizes[prototype] = max(size_of(self._before[prototype]), LEAST)
        return size_of(weights) / self._sizes[prototype]

    def take(self, update: Update) -> None:
        """One more of the round's updates: its weights, and what is as long as they are, such as a control variate."""
        if update.weights:
            self._note("weights", update.client, self.of(update.prototype, update.weights))
            parameters = update.weights.layout.parameter_count
            for name, tensor in update.extras.items():
                if tensor.is_floating_point() and tensor.shape == (parameters,):
                    self._note(f"extra '{name}'", update.client, _size(tensor) / LEAST)

    def _note(self, what: str, client: int, growth: float) -> None:
        self._brought.setdefault(what, {})[client] = growth

    def refused(self) -> dict[int, str]:
        """The clients that brought something nothing like the others', and what."""
        reasons: dict[int, str] = {}
        for what, growths in self._brought.items():
            most = APART * max(1.0, median_low(growths.values()))
            for client, growth in growths.items():
                if growth > most or math.isinf(growth):
                    than = "those that it was sent" if what == "weights" else "usual"
                    reasons.setdefault(client, f"{what}: {_in_words(growth, than)}")
        return reasons

    def fault(self, prototype: str, weights: Weights) -> str | None:
        """What is wrong with a model of the server; None if nothing is."""
        growth = self.of(prototype, weights)
        if growth <= BEYOND:
            return None
        return f"weights were {_in_words(growth, 'before') if weights.is_finite() else 'not finite'}"


def size_of(weights: Weights) -> float:
    """The root of the parameters' mean square; infinite as well if the buffers have no such number."""
    flat, count = weights.flat, weights.layout.parameter_count
    if not is_sound(flat[count:]):
        return math.inf
    return _size(flat[:count])


def unsound(memory: Tensors, before: Tensors, nan_is_no_value: bool = False) -> str | None:
    """The name of a tensor that nobody could work with, among those that are not as they were before."""
    for name, tensor in memory.items():
        if tensor is not before.get(name):
            known = tensor.nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf) if nan_is_no_value else tensor
            if not is_sound(known):
                return name
    return None


def is_sound(tensor: Tensor) -> bool:
    """Whether all numbers are finite, and their squares too."""
    return not tensor.numel() or not tensor.is_floating_point() or math.isfinite(_norm(tensor))


def _in_words(growth: float, than: str) -> str:
    return f"{growth:.0e} times as large as {than}" if math.isfinite(growth) else "too large for their squares"


def _size(tensor: Tensor) -> float:
    size = _norm(tensor) / math.sqrt(max(tensor.numel(), 1))
    return size if math.isfinite(size) else math.inf


def _norm(tensor: Tensor) -> float:
    return float(torch.linalg.vector_norm(tensor.float()))
