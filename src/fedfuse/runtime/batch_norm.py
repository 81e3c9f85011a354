"""Running statistics of BatchNorm layers, computed anew."""

from __future__ import annotations

import torch
from torch import nn

from fedfuse.core.slices import even_slices
from fedfuse.models.modes import batch_norms_training
from fedfuse.runtime.source import Shown

REESTIMATION_BATCH = 256


@torch.no_grad()
def reestimate(model: nn.Module, source: Shown) -> None:
    """Replace running statistics by the mean of the batch statistics over the whole source.

    Its inputs are mixed first: where they lie class by class, every batch would lack what differs between classes.
    """
    with batch_norms_training(model) as layers:
        momenta = [layer.momentum for layer in layers]
        for layer in layers:
            layer.reset_running_stats()
            layer.momentum = None  # torch's spelling of "cumulative average"
        try:
            for where in even_slices(len(source), REESTIMATION_BATCH):
                model(source.inputs(source.mixed[where]))
        finally:
            for layer, momentum in zip(layers, momenta, strict=True):
                layer.momentum = momentum
