"""Fisher-weighted averaging (Matena and Raffel, Merging Models with Fisher-Weighted Averaging, NeurIPS 2022).

    theta = sum_k s_k F_k theta_k / sum_k s_k F_k        number by number

F_k is the diagonal of client k's Fisher information (``diagonal_fisher.py``) on public inputs, and at least ``floor``,
as in the released code: a parameter on which no prediction depends is the mean. s_k is 1/m, or n_k / sum_j n_j.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.weights import Weights
from fedfuse.parts.merge.diagonal_fisher import Labels, diagonal_fisher
from fedfuse.parts.merge.trained import ModelMerge, TrainedModels, UniformMerge


class Fisher(UniformMerge, ModelMerge):
    """The average in which a model counts for a parameter as far as its predictions depend on it."""

    kind: Literal["fisher"] = "fisher"
    needs_source: ClassVar[bool] = True
    labels: Labels = Field("exact", description="of the expectation: exact: all classes; sampled: one for each input")
    inputs: int = Field(256, ge=1, description="how many public inputs at most it is measured on")
    floor: float = Field(1e-6, gt=0, description="the least Fisher information of a parameter, as in the released code")

    def combine(self, trained: TrainedModels) -> Weights:
        """Parameters are merged, BatchNorm statistics are averaged."""
        average = trained.mean()
        total = torch.zeros_like(average.parameters, dtype=torch.float64)
        counted = torch.zeros_like(total)
        for model, share, name in zip(trained.models, trained.shares, trained.names, strict=True):
            weight = share * self.importance(trained, model, name)
            total += weight * model.parameters
            counted += weight
        return average.with_parameters((total / counted).to(average.flat.dtype))

    def importance(self, trained: TrainedModels, model: Weights, name: str) -> Tensor:
        """F_k as one vector, in the order of the parameters."""
        random = trained.key.child("labels", name).torch()
        found = diagonal_fisher(trained.network(model), trained.batches(name, self.inputs), self.labels, random)
        return torch.cat([found[name].reshape(-1) for name, _ in model.layout.parameters]).clamp_min(self.floor)
