"""RegMean (Jin et al., Dataless Knowledge Fusion by Merging Weights of Language Models, ICLR 2023).

The weights of a linear layer whose outputs are, summed over all models, nearest to each model's own on its own inputs:

    W = argmin sum_k s_k |X_k W - X_k W_k|^2 = (sum_k s_k G_k)^-1 sum_k s_k G_k W_k        G_k = X_k^T X_k

with the off-diagonal numbers of G_k times alpha. X_k is what the layer reads in model k when that is shown the public
inputs (``gram.py``); a convolution reads patches. All other parameters, biases too, are averaged, as are layers with
more than ``most_features`` inputs or in groups. It is solved as a step from the mean, so that features that no input
has leave the mean as it is, and one model alone is itself.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.weights import Weights
from fedfuse.parts.merge.gram import gram_matrices
from fedfuse.parts.merge.trained import ModelMerge, TrainedModels, UniformMerge


class RegMean(UniformMerge, ModelMerge):
    """The average in which a linear layer answers, on public inputs, as nearly as it can like all models."""

    kind: Literal["regmean"] = "regmean"
    needs_source: ClassVar[bool] = True
    alpha: float = Field(0.9, ge=0, le=1, description="factor on off-diagonal numbers; 0.9 in the paper, 0.1 for T5")
    inputs: int = Field(256, ge=1, description="how many public inputs at most the layers are looked at with")
    most_features: int = Field(
        2048, ge=1, description="layers with more inputs are averaged: a matrix has the square of that"
    )

    def combine(self, trained: TrainedModels) -> Weights:
        """Layers by regression; everything else, BatchNorm statistics too, is averaged."""
        average = trained.mean()
        layers: dict[str, Regression] = {}
        for model, share, own in zip(trained.models, trained.shares, trained.names, strict=True):
            here = model.here
            grams = gram_matrices(trained.network(here), trained.batches(own, self.inputs), self.most_features)
            for name, gram in grams.items():
                if name in average:  # not the parameter of another layer too, under whose name it is averaged
                    layers.setdefault(name, Regression(average[name], self.alpha)).add(here[name], gram, share)
        merged = average.flat.clone()
        for name, layer in layers.items():
            Weights(merged, average.layout)[name].copy_(layer.weight())
        return Weights(merged, average.layout)


class Regression:
    """The normal equations of one layer, to which one model after another is added.

    Row c of ``start`` and of all weights has what output c makes of the inputs, as torch keeps it.
    """

    def __init__(self, start: Tensor, alpha: float) -> None:
        self.start, self.alpha = start, alpha
        features = start[0].numel()
        self.left = torch.zeros(features, features, dtype=torch.float64)
        self.right = torch.zeros(features, len(start), dtype=torch.float64)

    def add(self, weight: Tensor, gram: Tensor, share: float) -> None:
        """A model's weight, and what its layer reads."""
        scaled = share * (self.alpha * gram + (1 - self.alpha) * gram.diagonal().diag())
        self.left += scaled
        self.right += scaled @ (weight.double() - self.start).flatten(1).T

    def weight(self) -> Tensor:
        """Of all that were added, in double precision."""
        return self.start + self._step().T.reshape(self.start.shape)

    def _step(self) -> Tensor:
        """left^-1 right, and zero for features that are always zero; scaled to a diagonal of ones before."""
        lengths = self.left.diagonal().sqrt()
        inverse = lengths.reciprocal().where(lengths > 0, 0.0).unsqueeze(1)
        matrix = inverse * self.left * inverse.T + (lengths == 0).double().diag()
        target = inverse * self.right
        if self.alpha < 1:  # no eigenvalue is less than 1 - alpha
            return inverse * torch.cholesky_solve(target, torch.linalg.cholesky(matrix))
        inverted: Tensor = torch.linalg.pinv(matrix, hermitian=True)
        return inverse * (inverted @ target)
