"""What one network says about many inputs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fedfuse.core.slices import slices
from fedfuse.models import Classifier
from fedfuse.models.modes import evaluation_mode
from fedfuse.runtime.source import PREDICTION_BATCH, Source


def logits_on(source: Source, model: Classifier) -> Tensor:
    """The network's logits for every input of the source, in eval mode, on the CPU."""
    return _on(source, model, model)


def features_on(source: Source, model: Classifier) -> Tensor:
    """The same for its features."""
    return _on(source, model, model.features)


@torch.no_grad()
def _on(source: Source, model: Classifier, ask: Callable[[Tensor], Tensor]) -> Tensor:
    where = source.all_indices()
    with evaluation_mode(model):
        return torch.cat([ask(source.inputs(where[rows])).cpu() for rows in slices(len(source), PREDICTION_BATCH)])
