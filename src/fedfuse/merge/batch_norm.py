"""What happens to BatchNorm statistics when clients' weights are merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch

from fedfuse.core.messages import Update
from fedfuse.core.weights import Weights
from fedfuse.models import Classifier
from fedfuse.runtime.batches import slices
from fedfuse.runtime.evaluate import batch_norms_training
from fedfuse.runtime.source import Source
from fedfuse.runtime.view import ServerView

BatchNormPolicy = Literal["average", "last", "reestimate", "batch"]
"""average: like every other weight. last: the last client's, as FedDF's released code. reestimate: computed
anew on the distillation source. batch: averaged, but evaluation normalises by each test batch."""

REESTIMATION_BATCH = 256


def settle(
    policy: BatchNormPolicy, view: ServerView, prototype: str, merged: Weights, updates: Sequence[Update]
) -> Weights:
    """The merged weights with their BatchNorm statistics settled by the policy."""
    if not merged.layout.buffers:
        return merged
    if policy == "last":
        return merged.with_buffers(updates[-1].weights.buffers)
    if policy == "reestimate" and view.source is not None:
        model = view.bank.lend(prototype, merged)
        reestimate(model, view.source)
        return Weights.of(model, merged.layout)
    return merged


@torch.no_grad()
def reestimate(model: Classifier, source: Source) -> None:
    """Replace running statistics by the mean of the batch statistics over the whole source."""
    with batch_norms_training(model) as layers:
        momenta = [layer.momentum for layer in layers]
        for layer in layers:
            layer.reset_running_stats()
            layer.momentum = None  # torch's spelling of "cumulative average"
        try:
            for where in slices(len(source), REESTIMATION_BATCH):
                model(source.inputs(source.all_indices()[where]))
        finally:
            for layer, momentum in zip(layers, momenta, strict=True):
                layer.momentum = momentum
