"""Whether a network computes faster with its images stored channels-last: the rule behind ``channels_last: auto``.

Convolutions and pooling on a CPU do (docs/performance.md). The answer depends on the network and the kind of device
alone, never on a measurement, so that it is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from fedfuse.core.randomness import Key
from fedfuse.models.modes import evaluation_mode

TRIAL = 2
"""Inputs of a trial."""


def pays(networks: Iterable[nn.Module], input_shape: tuple[int, ...], device: torch.device) -> bool:
    """Whether any of the networks gains by it, and none breaks."""
    if device.type != "cpu" or len(input_shape) != 3:
        return False
    found = list(networks)
    convolve = any(isinstance(layer, nn.Conv2d) for network in found for layer in network.modules())
    return convolve and all(_works(network, input_shape) for network in found)


def _works(network: nn.Module, input_shape: tuple[int, ...]) -> bool:
    """A network of one's own may look at its activations by ``view``, which demands the order they had before."""
    images = torch.zeros(TRIAL, *input_shape).contiguous(memory_format=torch.channels_last)
    try:
        with torch.no_grad(), Key(0, ("layout",)).default_generator(), evaluation_mode(network):
            network.to(memory_format=torch.channels_last)(images)  # type: ignore[call-overload]
    except Exception:
        return False
    finally:
        network.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    return True
