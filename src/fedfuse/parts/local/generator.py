"""FedGen's generator of features (Zhu, Hong and Zhou, 2021), and how the server trains it without any data.

    G(eps, y) = Linear( ReLU( BatchNorm( Linear( [eps, one-hot y] ))))     a feature, as a classifier's last layer takes

    minimise over G   sum_k mean_y( n_k^y / sum_j n_j^y  CE(classifier_k(G(eps, y)), y) )
                      + eta exp( mean_{i,j}( -||eps_i - eps_j||^2 |g_i - g_j| ) )

n_k^y examples of label y are client k's; g_i = G(eps_i, y_i); the second mean is over all pairs of a batch, i = j too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from fedfuse.core.messages import Tensors
from fedfuse.core.part import Settings
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Layout, Weights
from fedfuse.runtime.compute import Compute
from fedfuse.runtime.optimizers import Adam, Stepper

WEIGHTS, FIRST, SECOND, STEPS = "generator", "first_moments", "second_moments", "steps"
"""What the server remembers: the generator with its BatchNorm statistics, and all that Adam knows about it."""


class Generator(nn.Module):
    """A feature for a label, different for different noise."""

    def __init__(self, noise: int, classes: int, hidden: int, feature_size: int) -> None:
        super().__init__()
        self.noise, self.classes = noise, classes
        self.layers = nn.Sequential(
            nn.Linear(noise + classes, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, feature_size),
        )

    def forward(self, noise: Tensor, labels: Tensor) -> Tensor:
        features: Tensor = self.layers(torch.cat([noise, F.one_hot(labels, self.classes).to(noise.dtype)], dim=1))
        return features


class GeneratorSettings(Settings):
    """The generator's size, and its training on the server; the defaults are those of FedGen's code for MNIST."""

    hidden: int = Field(256, ge=1, description="width of its hidden layer; FedGKD took 512 for ResNet-8")
    noise: int = Field(32, ge=1, description="how many random numbers it starts from; FedGKD took 64 for ResNet-8")
    distribution: Literal["uniform", "gaussian"] = Field(
        "uniform", description="of those numbers. uniform: between 0 and 1, as FedGen's code; gaussian: as printed"
    )
    steps: int = Field(50, ge=1, description="optimiser steps per round")
    batch_size: int = Field(32, ge=2, description="generated features per step")
    learning_rate: float = Field(3e-4, gt=0, description="of its Adam; FedGen's code took 1e-4 for EMNIST")
    weight_decay: float = Field(1e-2, ge=0, description="of its Adam")
    rate_decay: float = Field(0.98, gt=0, le=1, description="what its learning rate is multiplied by after each round")
    diversity: float = Field(1.0, ge=0, description="eta: weight of the term that keeps features of a label apart")
    distances: Literal["norms", "means"] = Field(
        "means",
        description="inside that term. norms: as printed, 0 for wide features; means: of coordinates, as FedGen's code",
    )

    def build(self, classes: int, feature_size: int, key: Key) -> Generator:
        """A generator whose initial weights depend on ``key`` alone."""
        with key.default_generator():
            return Generator(self.noise, classes, self.hidden, feature_size)

    def load(self, flat: Tensor, classes: int, feature_size: int, compute: Compute) -> Generator:
        """A generator with these weights, on the device."""
        generator = self.build(classes, feature_size, Key(0, ("resident",)))
        Weights(flat, Layout.of(generator)).load_into(generator)
        return generator.to(compute.device)

    def draw_noise(self, count: int, random: torch.Generator, device: torch.device) -> Tensor:
        """eps."""
        draw = torch.rand if self.distribution == "uniform" else torch.randn
        return draw(count, self.noise, generator=random).to(device)

    def diversity_loss(self, noise: Tensor, features: Tensor) -> Tensor:
        """exp( mean_{i,j}( -||eps_i - eps_j||^2 |g_i - g_j| ) ), with |.| the sum of the absolute values."""
        noise_gaps = (noise.unsqueeze(1) - noise).square()
        feature_gaps = (features.unsqueeze(1) - features).abs()
        if self.distances == "means":
            return (-noise_gaps.mean(dim=2) * feature_gaps.mean(dim=2)).mean().exp()
        return (-noise_gaps.sum(dim=2) * feature_gaps.sum(dim=2)).mean().exp()


def label_weights(counts: Sequence[Tensor]) -> Tensor:
    """n_k^y / sum_j n_j^y, one row per client; zero for a label that nobody has."""
    stacked = torch.stack(list(counts))
    return stacked / stacked.sum(dim=0).clamp_min(1)


@dataclass(frozen=True)
class Committee:
    """The clients' classifiers, fixed, and how much each has to say about each label."""

    classifiers: Sequence[nn.Module]
    weights: Tensor

    @property
    def labels(self) -> Tensor:
        """The labels that somebody knows."""
        return self.weights.sum(dim=0).nonzero().squeeze(1)

    def loss(self, features: Tensor, labels: Tensor) -> Tensor:
        """sum_k mean( weight_k[y] CE(classifier_k(feature), y) )."""
        terms = [
            (weights[labels] * F.cross_entropy(classifier(features), labels, reduction="none")).mean()
            for classifier, weights in zip(self.classifiers, self.weights, strict=True)
        ]
        return torch.stack(terms).sum()


@dataclass(frozen=True)
class Training:
    """One round of the generator's training; it goes on from the memory of the rounds before."""

    settings: GeneratorSettings
    generator: Generator
    committee: Committee
    learning_rate: float

    def run(self, memory: Tensors, key: Key, progress: Callable[[int], None]) -> Tensors:
        """Train, and return the memory for the next round."""
        optimizer = self._optimizer(memory)
        random = key.torch()
        self.generator.train()
        for step in range(self.settings.steps):
            progress(step)
            noise, labels = self._draw(random)
            optimizer.zero_grad()
            self.loss(noise, labels).backward()
            optimizer.step()
        progress(self.settings.steps)
        return {WEIGHTS: Weights.of(self.generator).flat, **_moments(optimizer, self.generator)}

    def loss(self, noise: Tensor, labels: Tensor) -> Tensor:
        features = self.generator(noise, labels)
        agreement = self.committee.loss(features, labels)
        return agreement + self.settings.diversity * self.settings.diversity_loss(noise, features)

    def _draw(self, random: torch.Generator) -> tuple[Tensor, Tensor]:
        known, device = self.committee.labels, self.committee.weights.device
        which = torch.randint(len(known), (self.settings.batch_size,), generator=random)
        return self.settings.draw_noise(self.settings.batch_size, random, device), known[which.to(device)]

    def _optimizer(self, memory: Tensors) -> Stepper:
        settings = Adam(learning_rate=self.learning_rate, weight_decay=self.settings.weight_decay)
        optimizer = settings.build(self.generator)
        if STEPS in memory:
            parameters = list(self.generator.parameters())
            pieces = (memory[name].split([p.numel() for p in parameters]) for name in (FIRST, SECOND))
            for parameter, first, second in zip(parameters, *pieces, strict=True):
                # Copies, because Adam changes its state in place and memory is a value.
                optimizer.state[parameter] = {
                    "step": memory[STEPS].clone().to(parameter.device),
                    "exp_avg": first.clone().view_as(parameter).to(parameter.device),
                    "exp_avg_sq": second.clone().view_as(parameter).to(parameter.device),
                }
        return optimizer


def _moments(optimizer: Stepper, generator: Generator) -> Tensors:
    """Adam's state as flat vectors in the order of the parameters; its number of steps is the same for all."""
    states = [optimizer.state[parameter] for parameter in generator.parameters()]
    return {
        FIRST: torch.cat([state["exp_avg"].reshape(-1) for state in states]).cpu(),
        SECOND: torch.cat([state["exp_avg_sq"].reshape(-1) for state in states]).cpu(),
        STEPS: states[0]["step"].detach().clone().cpu(),
    }
