"""Floating-point operations of a network: by them work is compared between networks, machines and methods."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from fedfuse.core.randomness import Key
from fedfuse.core.text import TextShape
from fedfuse.models import Architecture, create
from fedfuse.models.modes import evaluation_mode

BACKWARD = 3
"""Forward passes that a training step costs."""


def forward_operations(architecture: Architecture, shape: tuple[int, ...], classes: int) -> float:
    """Operations of one input's way through a network of this kind, counted without computing any."""
    return _counted(type(architecture), architecture.model_dump_json(), shape, classes)


@lru_cache(maxsize=256)
def _counted(kind: type[Architecture], settings: str, shape: tuple[int, ...], classes: int) -> float:
    with torch.device("meta"):
        return operations_of(create(kind.model_validate_json(settings), shape, classes, Key(0)), shape)


def operations_of(model: nn.Module, shape: tuple[int, ...]) -> float:
    """Operations of one input's way through this network."""
    with torch.device(next(model.parameters()).device):
        is_text = isinstance(shape, TextShape)
        probe = torch.ones(1, shape.length, dtype=torch.long) if is_text else torch.zeros(1, *shape)  # type: ignore[attr-defined]
    with torch.no_grad(), evaluation_mode(model), FlopCounterMode(display=False) as counter:
        model(probe)
    return float(counter.get_total_flops())
