"""What one network says about many inputs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fedfuse.core.slices import steady_slices
from fedfuse.models import Classifier
from fedfuse.models.modes import evaluation_mode
from fedfuse.runtime.source import Source, prediction_batch


def in_small_batches(ask: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
    """What a network says about any number of inputs, asked in batches that suit their device."""
    return torch.cat([ask(inputs[rows]) for rows in steady_slices(len(inputs), prediction_batch(inputs.device))])


def logits_on(source: Source, model: Classifier) -> Tensor:
    """The network's logits for every input of the source, in eval mode, on the CPU."""
    return _on(source, model, model)


def features_on(source: Source, model: Classifier) -> Tensor:
    """The same for its features."""
    return _on(source, model, model.features)


@torch.no_grad()
def _on(source: Source, model: Classifier, ask: Callable[[Tensor], Tensor]) -> Tensor:
    with evaluation_mode(model):
        batches = map(source.inputs, source.batches(source.all_indices()))
        return torch.cat([in_small_batches(ask, inputs).cpu() for inputs in batches])
