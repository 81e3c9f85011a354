"""What travels between server and clients. The bytes of these two are the communication ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from fedfuse.core.weights import Weights

TEST_OUTPUTS = "test_outputs"
"""What a task asks for to have the client's own model measured."""

Tensors = Mapping[str, Tensor]
"""Named tensors that travel or persist beside the weights; a scalar is a tensor without dimensions."""


@dataclass(frozen=True)
class Task:
    """Server to client: train this prototype from these weights.

    ``weights`` is NOTHING for a client that goes on with its own. ``extras`` is what the method's parts broadcast
    (teacher weights, control variate, generator, ...), ``asks`` names what the answer shall bring beside the usual.
    """

    round: int
    client: int
    prototype: str
    weights: Weights
    extras: Tensors = field(default_factory=dict)
    asks: tuple[str, ...] = ()

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

    @property
    def nbytes(self) -> int:
        return self.weights.nbytes + nbytes_of(self.extras)


def nbytes_of(tensors: Tensors) -> int:
    return sum(t.numel() * t.element_size() for t in tensors.values())
