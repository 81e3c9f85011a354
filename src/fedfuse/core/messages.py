"""What travels between server and clients. The bytes of these two are the communication ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from torch import Tensor

from fedfuse.core.weights import Weights

Value = TypeVar("Value")

TEST_OUTPUTS = "test_outputs"
"""What a task asks for to have the client's own model measured."""

Tensors = Mapping[str, Tensor]
"""Named tensors that travel or persist beside the weights; a scalar is a tensor without dimensions."""


def within(part: str, tensors: Mapping[str, Value]) -> dict[str, Value]:
    """A part's names inside everybody's: parts cannot meet there, whatever they call their own."""
    return {f"{part}/{name}": value for name, value in tensors.items()}


def of_part(part: str, tensors: Mapping[str, Value]) -> dict[str, Value]:
    """Out of everybody's, what belongs to one part, under the part's own names."""
    prefix = f"{part}/"
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


@dataclass(frozen=True)
class Task:
    """Server to client: train this prototype from these weights.

    ``weights`` is NOTHING for a client that goes on with its own. ``extras`` is what the method's parts broadcast
    (teacher weights, control variate, generator, ...), each under the name of its slot; ``asks`` names what the answer
    shall bring beside the usual.
    """

    round: int
    client: int
    prototype: str
    weights: Weights
    extras: Tensors = field(default_factory=dict)
    asks: tuple[str, ...] = ()

    def of(self, part: str) -> Task:
        """The same task with one part's extras alone, under that part's own names."""
        return replace(self, extras=of_part(part, self.extras)) if self.extras else self

    @property
    def nbytes(self) -> int:
        return self.weights.nbytes + nbytes_of(self.extras)


@dataclass(frozen=True)
class Update:
    """Client to server: what the client learnt from its own examples.

    ``weights`` is NOTHING, and ``extras`` has something in their place, where clients' weights do not travel.
    ``metrics`` are diagnostics for the event log, and ``test_outputs`` is what the client says about the test inputs
    where its own model is measured: neither is part of the method, and neither is counted as traffic.
    """

    round: int
    client: int
    prototype: str
    weights: Weights
    examples: int
    extras: Tensors = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    test_outputs: Tensors = field(default_factory=dict)

    def of(self, part: str) -> Update:
        """The same update with one part's extras alone, under that part's own names."""
        return replace(self, extras=of_part(part, self.extras)) if self.extras else self

    @property
    def nbytes(self) -> int:
        return self.weights.nbytes + nbytes_of(self.extras)


def nbytes_of(tensors: Tensors) -> int:
    return sum(t.numel() * t.element_size() for t in tensors.values())
