"""Whether a file can hold the weights of the network that it describes, found without making the network.

Whoever wrote the file may have described anything: a million layers, a billion classes. The network is made of shapes
alone, on torch's meta device, and no further than the file has tensors.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from typing import Any

from torch.nn.modules.module import register_module_parameter_registration_hook

from fedfuse.core.errors import ConfigError
from fedfuse.models import layout_of
from fedfuse.models.card import ModelCard

SLACK = 16
"""How many times as large as its file a network may be before its widths are fitted to the file."""
SMALL = 1 << 20
"""Numbers that are no matter of concern."""
REPLACED = 100
"""Tensors that a network may make and throw away again, besides as many as it has."""


def check_size(card: ModelCard, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise ValueError for a network that has not the names of these tensors, or many more numbers than they."""
    if getattr(card.architecture, "pretrained", None) is not None:
        return  # it is as large as what it was pre-trained to
    try:
        with _at_most(2 * len(shapes) + REPLACED):
            layout = layout_of(card.architecture, card.input_shape, card.classes)
    except (ConfigError, RuntimeError, ArithmeticError, TypeError) as error:
        raise ValueError(f"its network cannot be built: {error}") from None
    if layout.by_name.keys() != shapes.keys():
        other = min(layout.by_name.keys() ^ shapes.keys())
        raise ValueError(f"it does not fit the network that '{card.architecture.arch}' builds now; see '{other}'")
    if layout.size > SLACK * sum(map(prod, shapes.values())) + SMALL:
        raise ValueError(f"its network would have {layout.size} numbers, many more than the file holds")


@contextmanager
def _at_most(tensors: int) -> Iterator[None]:
    """No network with more tensors is made by this thread."""
    made, thread = 0, threading.get_ident()

    def count(*_: Any) -> None:
        nonlocal made
        made += threading.get_ident() == thread
        if made > tensors:
            raise ValueError("its network would have many more tensors than the file holds")

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()
