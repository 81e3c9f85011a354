"""BatchNorm layers apart from the rest of a network: using batch statistics, re-estimating running ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from fedfuse.runtime.batches import even_slices
from fedfuse.runtime.source import Source

BatchNorm = nn.modules.batchnorm._BatchNorm
REESTIMATION_BATCH = 256


@contextmanager
def batch_norms_training(model: nn.Module) -> Iterator[list[BatchNorm]]:
    """Inside the block, BatchNorm layers use and gather batch statistics while all else is in eval mode."""
    layers = [layer for layer in model.modules() if isinstance(layer, BatchNorm)]
    was_training = model.training
    model.eval()
    for layer in layers:
        layer.train()
    try:
        yield layers
    finally:
        model.train(was_training)


@torch.no_grad()
def reestimate(model: nn.Module, source: Source) -> None:
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
