"""A network that a file describes, made only as far as the file could hold its weights.

Whoever wrote the file may have described anything: a million layers, a billion classes. Torch tells of every tensor
that a network registers before anything is written into it: one that is too large is given up before it costs memory.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Layout
from fedfuse.models import Classifier, create
from fedfuse.models.card import ModelCard

SLACK = 16
"""How many times as large as its file a network may be before its widths are fitted to the file."""
SMALL = 1 << 20
"""Numbers that are no matter of concern."""
REPLACED = 100
"""Tensors that a network may make and throw away again, besides as many as it has."""


def created(card: ModelCard, shapes: Mapping[str, tuple[int, ...]]) -> Classifier:
    """The network, with weights to be overwritten; ValueError if these tensors cannot be its weights."""
    if getattr(card.architecture, "pretrained", None) is not None:
        return create(card.architecture, card.input_shape, card.classes, Key(0))  # as large as what lies elsewhere
    try:
        with at_most(2 * len(shapes) + REPLACED, SLACK * sum(map(prod, shapes.values())) + SMALL):
            model = create(card.architecture, card.input_shape, card.classes, Key(0))
    except (ConfigError, RuntimeError, ArithmeticError, TypeError, MemoryError) as error:
        raise ValueError(f"its network cannot be built: {error}") from None
    if others := Layout.of(model).by_name.keys() ^ shapes.keys():
        raise ValueError(f"it does not fit the network that '{card.architecture.arch}' builds now; see {min(others)!a}")
    return model


@contextmanager
def at_most(tensors: int, numbers: int) -> Iterator[None]:
    """No network with more is made by this thread: ValueError."""
    thread, left = threading.get_ident(), [tensors, numbers]

    def count(_module: nn.Module, _name: str, tensor: Tensor | None) -> None:
        if tensor is not None and threading.get_ident() == thread:
            left[0] -= 1
            left[1] -= tensor.numel()
            if min(left) < 0:
                raise ValueError("its network is much larger than what the file holds")

    hooks: list[Any] = [
        register_module_parameter_registration_hook(count),
        register_module_buffer_registration_hook(count),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
