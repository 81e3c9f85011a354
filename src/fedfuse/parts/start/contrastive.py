"""Self-supervised features from unlabelled public data: SimCLR (Chen et al., 2020), as FedAUX begins.

    minimise  -log( exp(cos(z_i, z_i') / tau) / sum_{j != i} exp(cos(z_i, z_j) / tau) )

over all views of a batch, where z_i and z_i' are projections of the features of two views of one input, and j runs over
the other 2n - 1 views. A view is a shifted crop (of images), with random contrast and brightness and a little noise.
The projection is thrown away, and the classifier stays as it was initialised.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError
from fedfuse.core.weights import Weights
from fedfuse.data import Transform
from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ServerView
from fedfuse.parts.start.base import Start
from fedfuse.runtime.batches import epoch_batches
from fedfuse.runtime.optimizers import Adam, AnyOptimizer
from fedfuse.runtime.source import Source


class Contrast(Start):
    """Train the features so that two views of one input are alike, and views of different inputs are not."""

    kind: Literal["contrastive"] = "contrastive"
    needs_source: ClassVar[bool] = True
    epochs: int = Field(20, ge=1, description="passes over the public inputs")
    batch_size: int = Field(256, ge=2, description="inputs per step")
    temperature: float = Field(0.5, gt=0, description="tau")
    projection: int = Field(128, ge=1, description="size of the projection in which views are compared")
    shift: float = Field(0.125, ge=0, lt=1, description="how far a crop may shift, as a share of the image's side")
    flip: bool = Field(False, description="also mirror images at random; not for digits and letters")
    jitter: float = Field(0.4, ge=0, lt=1, description="contrast and brightness change by up to this share")
    noise: float = Field(0.1, ge=0, description="deviation of the noise on normalised inputs")
    optimizer: AnyOptimizer = Field(default_factory=Adam, description="how the features step")

    def check(self, context: CheckContext) -> None:
        if context.bank.reads_texts:
            raise ConfigError(
                "method.start contrastive shifts and jitters numbers, which texts are not; use fresh or saved"
            )

    def begin(self, view: ServerView, prototype: str) -> Weights:
        fresh, key = self.fresh(view, prototype), view.key.child("contrastive", prototype)
        model = view.bank.lend(prototype, fresh)
        size = model.feature_size
        with key.child("projection").default_generator():
            head = nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, self.projection))
        learner = nn.ModuleDict({"model": model, "head": head.to(view.bank.compute.device)})
        optimizer = self.optimizer.build(learner)
        model.train()
        with key.child("dropout").default_generator():
            for epoch in range(self.epochs):
                view.progress("contrastive", epoch, self.epochs)
                random = key.child("views", epoch).torch()
                for where in epoch_batches(len(view.public), self.batch_size, key.child("batches", epoch)):
                    pair = torch.cat([self.look(view.public, where, random) for _ in range(2)])
                    loss = contrast(head(model.features(pair)), self.temperature)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
        view.progress("contrastive", self.epochs, self.epochs)
        return Weights.of(model, fresh.layout)

    def look(self, source: Source, where: Tensor, random: torch.Generator) -> Tensor:
        """A random view of the inputs at these positions."""
        raw = source.raw[where]
        if raw.dim() == 4:
            padding = round(self.shift * min(raw.shape[2:]))
            shifted = Transform(source.transform.normalisation, tuple(raw.shape[1:]), padding, self.flip)
            raw = shifted.augment(raw, random)
        inputs = source.transform(raw)
        shape = (2, len(inputs), *[1] * (inputs.dim() - 1))
        scale, offset = self.jitter * (2 * torch.rand(shape, generator=random) - 1)
        noise = self.noise * torch.randn(inputs.shape, generator=random)
        return source.compute.inputs(inputs * (1 + scale) + offset + noise)


def contrast(projections: Tensor, temperature: float) -> Tensor:
    """The loss of 2n projections, of which i and n + i belong together."""
    unit = F.normalize(projections, dim=1)
    count = len(unit) // 2
    itself = torch.eye(2 * count, dtype=torch.bool, device=unit.device)
    similarity = (unit @ unit.T / temperature).masked_fill(itself, -torch.inf)
    partner = torch.arange(2 * count, device=unit.device).roll(count)
    return F.cross_entropy(similarity, partner)
