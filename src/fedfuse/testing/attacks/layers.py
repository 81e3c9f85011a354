"""Which numbers of a model are its last layer's."""

from __future__ import annotations

import torch
from torch import Tensor

from fedfuse.core.weights import Layout


def of_last_layer(layout: Layout) -> Tensor:
    """Of each parameter, whether it belongs to the last layer."""
    parameters = layout.entries[: len(layout.parameters)]
    layer = _layer(parameters[-1].name)
    return torch.cat([torch.full((entry.size,), _layer(entry.name) == layer) for entry in parameters])


def _layer(name: str) -> str:
    return name.rpartition(".")[0]
