"""The diagonal of a network's Fisher information, measured on inputs without labels.

    F = (1/n) sum_i E_{y ~ p(y | x_i)} (d log p(y | x_i) / d theta)^2

The labels are the network's own: all of them with their probabilities (exact), or one of them drawn (sampled). Squares
are of single inputs' gradients, so inputs are shown one at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import torch
from torch import Tensor, nn

from fedfuse.models.modes import evaluation_mode

Labels = Literal["exact", "sampled"]


@torch.enable_grad()
def diagonal_fisher(
    model: nn.Module, batches: Iterable[Tensor], labels: Labels, random: torch.Generator
) -> dict[str, Tensor]:
    """For each parameter a tensor of its shape, in double precision on the CPU; zeros for one that is never used."""
    sums = {name: torch.zeros(p.shape, dtype=torch.float64) for name, p in model.named_parameters()}
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    count = 0
    with evaluation_mode(model):
        for one in (row for batch in batches for row in batch.split(1)):
            log_probabilities = model(one).log_softmax(dim=1)[0]
            for label, weight in _labels(log_probabilities, labels, random):
                found = torch.autograd.grad(
                    log_probabilities[label], list(trained.values()), retain_graph=True, allow_unused=True
                )
                for name, gradient in zip(trained, found, strict=True):
                    if gradient is not None:
                        sums[name].add_(gradient.cpu().double().square_(), alpha=weight)
            count += 1
    return {name: total / count for name, total in sums.items()}


def _labels(log_probabilities: Tensor, labels: Labels, random: torch.Generator) -> list[tuple[int, float]]:
    """Labels and how much they count."""
    probabilities = log_probabilities.detach().exp().cpu()
    if labels == "exact":
        return list(enumerate(probabilities.tolist()))
    return [(int(torch.multinomial(probabilities, 1, generator=random)), 1.0)]
