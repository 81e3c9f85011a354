"""Which networks train several clients at a time, how many, and in batches of which length.

A stack has a fixed shape: so many places, some of them perhaps empty, and batches of one length, filled up with
examples that do not count. The shape depends on the experiment and on a client's own number of examples, never on its
company, and the proof of models/twin_proof.py holds for it: so the client's bits do not, either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fedfuse.core.slices import slices
from fedfuse.models import Classifier
from fedfuse.models.stacked import Twin
from fedfuse.models.twin_proof import has_twin

MOST = 10
"""Clients in a stack; more of them gain nothing."""
SAFE = 8
"""A number for which means over pixels are the same in all places, whatever the width."""
CONVOLUTIONS, PRODUCTS = 40_000_000, 1_000_000
"""Multiplications of a client's step, in convolutions and in linear layers, up to which a stack is faster (the plain
kernels of larger ones have enough to do)."""

_PROVED: dict[Hashable, bool] = {}
"""Proofs of networks that are known by what they are made of."""


@dataclass(frozen=True)
class Stack:
    """A network for several clients, and the length of their batches."""

    twin: Twin
    length: int


class Twins:
    """The stacks of one bank's prototypes; each is proved and built once.

    ``identity`` of a prototype is what its network is made of, if that is known: what was proved for another bank of
    this process holds for this one.
    """

    def __init__(
        self,
        device: torch.device,
        input_shape: tuple[int, ...],
        create: Callable[[str], Classifier],
        identity: Callable[[str], Hashable] = lambda _: None,
    ) -> None:
        self.device, self.input_shape, self.create, self.identity = device, input_shape, create, identity
        self._stacks: dict[tuple[str, int, int], Stack | None] = {}
        self._twins: dict[tuple[str, int], Twin] = {}

    def stack(self, prototype: str, length: int, together: int) -> Stack | None:
        """For batches of up to ``length``, where about ``together`` clients train in a round; None: one by one."""
        key = (prototype, length, together)
        if key not in self._stacks:
            with torch.inference_mode(False):
                self._stacks[key] = self._found(*key)
        return self._stacks[key]

    def _found(self, prototype: str, length: int, together: int) -> Stack | None:
        if together < 2:
            return None
        network = self.create(prototype).to(self.device)
        if not pays(network, self.input_shape, length):
            return None
        for size, long in _shapes(together, length):
            if self._is_proved(prototype, network, long, size):
                return Stack(self._twin(prototype, network, size), long)
        return None

    def _is_proved(self, prototype: str, network: Classifier, length: int, size: int) -> bool:
        about = (self.input_shape, length, size, self.device)
        identity = self.identity(prototype)
        if identity is None:
            return has_twin(network, *about)
        key = (identity, *about, torch.get_num_threads())
        if key not in _PROVED:
            _PROVED[key] = has_twin(network, *about)
        return _PROVED[key]

    def _twin(self, prototype: str, network: Classifier, size: int) -> Twin:
        if (prototype, size) not in self._twins:
            self._twins[prototype, size] = Twin(network, size, self.device)
        return self._twins[prototype, size]


def filled_length(examples: int, batch_size: int) -> int:
    """How long a client's batches are when they are filled up: the longest one, of a small client a power of two."""
    longest: int = max(where.stop - where.start for where in slices(examples, batch_size))
    return longest if longest >= batch_size else min(batch_size, max(4, 1 << (longest - 1).bit_length()))


def _shapes(together: int, length: int) -> Iterator[tuple[int, int]]:
    """Places and length, the best first: as many places as fill up evenly, then such as kernels treat alike."""
    even = math.ceil(together / math.ceil(together / MOST))
    longer = math.ceil(length / 4) * 4
    yield from dict.fromkeys([(even, length), (even, longer), (SAFE, longer)])


def pays(network: Classifier, input_shape: tuple[int, ...], length: int) -> bool:
    """Whether a step on so many inputs is small enough to gain by company."""
    try:
        convolutions, products = multiplications(network, input_shape)
    except Exception:  # somebody else's network
        return False
    return length * convolutions <= CONVOLUTIONS and length * products <= PRODUCTS


def multiplications(network: Classifier, input_shape: tuple[int, ...]) -> tuple[int, int]:
    """For one input, in convolutions and in linear layers."""
    counts = {nn.Conv2d: 0, nn.Linear: 0}

    def count(layer: nn.Module, _inputs: tuple[Tensor, ...], output: Tensor) -> None:
        counts[type(layer)] += output.numel() * layer.weight[0].numel()  # type: ignore[index]

    hooks = [layer.register_forward_hook(count) for layer in network.modules() if type(layer) in counts]
    try:
        with torch.no_grad():
            network.eval()(torch.zeros(1, *input_shape, device=next(network.parameters()).device))
    finally:
        network.train()
        for hook in hooks:
            hook.remove()
    return counts[nn.Conv2d], counts[nn.Linear]
