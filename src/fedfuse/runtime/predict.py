"""What one network says about many inputs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fedfuse.runtime.batches import slices
from fedfuse.runtime.evaluate import evaluation_mode
from fedfuse.runtime.source import PREDICTION_BATCH, Source


@torch.no_grad()
def logits_on(source: Source, model: nn.Module) -> Tensor:
    """The network's logits for every input of the source, in eval mode, on the CPU."""
    where = source.all_indices()
    with evaluation_mode(model):
        return torch.cat([model(source.inputs(where[rows])).cpu() for rows in slices(len(source), PREDICTION_BATCH)])
