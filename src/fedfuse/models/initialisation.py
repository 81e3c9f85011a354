"""Initial weights that differ from torch's own: those of FedDF's and of FedBE's code."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from torch import nn

Initialisation = Literal["he", "xavier"]


def he(module: nn.Module) -> None:
    """Convolutions from N(0, 2 / (kernel size * outputs)); other layers stay as they are."""
    if isinstance(module, nn.Conv2d):
        height, width = module.kernel_size
        nn.init.normal_(module.weight, std=math.sqrt(2 / (height * width * module.out_channels)))
        _zero_bias(module)


def xavier(module: nn.Module) -> None:
    """Convolutions and linear layers uniformly, their biases zero."""
    if isinstance(module, nn.Conv2d | nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        _zero_bias(module)


def _zero_bias(module: nn.Conv2d | nn.Linear) -> None:
    if module.bias is not None:
        nn.init.zeros_(module.bias)


INITIALISE: dict[Initialisation, Callable[[nn.Module], None]] = {"he": he, "xavier": xavier}
