"""The modes in which a network is asked, and not trained: by its statistics, or by those of each batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

BatchNorm = nn.modules.batchnorm._BatchNorm


def batch_norms(model: nn.Module) -> list[BatchNorm]:
    """Its BatchNorm layers, of any dimension."""
    return [layer for layer in model.modules() if isinstance(layer, BatchNorm)]


@contextmanager
def batch_norms_training(model: nn.Module) -> Iterator[list[BatchNorm]]:
    """Inside the block, BatchNorm layers use and gather batch statistics while all else is in eval mode."""
    layers = batch_norms(model)
    was_training = model.training
    model.eval()
    for layer in layers:
        layer.train()
    try:
        yield layers
    finally:
        model.train(was_training)


@contextmanager
def evaluation_mode(model: nn.Module, batch_statistics: bool = False) -> Iterator[None]:
    """Put a network into eval mode inside the block, and back into the mode it had.

    With ``batch_statistics`` the norm layers normalise by each batch, and their running statistics are
    put back afterwards, so that looking at a model never changes it.
    """
    if batch_statistics:
        with batch_norms_training(model) as layers:
            saved = [(buffer, buffer.clone()) for layer in layers for buffer in layer.buffers()]
            try:
                yield
            finally:
                for buffer, value in saved:
                    buffer.copy_(value)
        return
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
