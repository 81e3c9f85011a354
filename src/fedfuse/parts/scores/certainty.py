"""FedAUX's certainty scores (Sattler et al., 2021): how much an input looks like client k's own data.

    w_k^j = P_k(own | h(x_j)) + 1e-8,   P_k = logistic regression of own examples against public negatives,

on features h of the model that the federation began with, scaled to a norm of at most 1; the regression minimises
(1/n) sum log(1 + exp(-y w.h)) + (lambda/2) |w|^2, so that Gaussian noise of variance

    2 ln(1.25 / delta) (2 / (n lambda))^2 / epsilon^2

on w makes it (epsilon, delta) differentially private, if the scale itself tells nothing (``scaled_by: public``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.fences import within_fences
from fedfuse.core.messages import Tensors
from fedfuse.core.randomness import Key
from fedfuse.core.releases import Release, of_gaussian
from fedfuse.core.weights import Weights
from fedfuse.parts.base import Shapes
from fedfuse.parts.claims import scaled, shares_claimed
from fedfuse.parts.context import ClientContext
from fedfuse.parts.scores.base import Said, Scores
from fedfuse.parts.tensor_spec import TensorSpec
from fedfuse.runtime.predict import features_on
from fedfuse.runtime.source import Source

SCORES, EXTRACTOR = "certainty_scores", "extractor"
DIRECTION, SCALE = "direction", "scale"
FLOOR = 1e-8
NEWTON_STEPS = 50


class ByCertainty(Scores):
    """An answer for an input counts by how much the input looks like the client's own data (4 n0 bytes up, once)."""

    kind: Literal["certainty"] = "certainty"
    per_input: ClassVar[bool] = True
    needs_extractor: ClassVar[bool] = True
    needs_source: ClassVar[bool] = True
    negatives: float = Field(
        0.2, gt=0, lt=1, description="random share of the public inputs, which only stands for everybody else's data"
    )
    regularisation: float = Field(0.01, gt=0, description="lambda of the logistic regression")
    epsilon: float | None = Field(
        None, gt=0, description="differential privacy of a client's regression; none without. FedAUX: 0.1"
    )
    delta: float = Field(1e-5, gt=0, lt=1, description="of (epsilon, delta)-differential privacy of the scores")
    scaled_by: Literal["all", "public"] = Field(
        "all",
        description="whose longest features have norm 1: the client's own or the public ones, as FedAUX; or the public "
        "ones alone, and longer own ones are cut to it, so that the scale tells nothing of the client",
    )

    def own_release(self) -> Release | None:
        if self.epsilon is None or self.scaled_by == "all":
            return None
        return of_gaussian(self.epsilon, self.delta)

    def inputs(self, source: Source, common: Key) -> Source:
        return source.part(self._divided(source, common)[0])

    def learn(self, client: ClientContext) -> Tensors:
        extractor = client.received.get(EXTRACTOR, client.task.weights.flat)
        negatives = client.public.part(self._divided(client.public, client.common)[1])
        own = Source("own", client.examples.inputs, client.transform, client.bank.compute)
        features = [_features(extractor, client, inputs) for inputs in (own, negatives)]
        judged = torch.cat(features)
        scale = 1 / (judged if self.scaled_by == "all" else features[1]).norm(dim=1).max().clamp_min(1e-12)
        signs = torch.cat([torch.ones(len(own)), -torch.ones(len(negatives))]).double()
        direction = fit(self._within_one(judged * scale), signs, self.regularisation)
        direction = direction + self._noise(client, len(signs), direction)
        return {EXTRACTOR: extractor, DIRECTION: direction, SCALE: scale}

    def say(self, learnt: Tensors, client: ClientContext, source: Source) -> Tensors:
        features = _features(learnt[EXTRACTOR], client, source) * learnt[SCALE]
        return {SCORES: ((features @ learnt[DIRECTION]).sigmoid() + FLOOR).float()}

    def spec(self, inputs: int, classes: int) -> Shapes:
        return {SCORES: TensorSpec((inputs,), least=0, most=1 + FLOOR)}

    def in_range(self, extras: Tensors) -> Tensors:
        return {name: scores.clamp(0, 1 + FLOOR) for name, scores in extras.items()}

    def within_bounds(self, said: Sequence[Tensors], examples: Sequence[int]) -> list[Tensors]:
        claimed = shares_claimed([own[SCORES] for own in said])
        return scaled(said, SCORES, within_fences(claimed))

    def weights(self, said: Sequence[Said]) -> list[Tensor]:
        scores = torch.stack([one.update.extras[SCORES].double() for one in said])
        return [share.unsqueeze(1).float() for share in scores / scores.sum(dim=0).clamp_min(FLOOR / 2)]

    def _divided(self, source: Source, common: Key) -> tuple[Tensor, Tensor]:
        """Positions of inputs that are asked about and of negatives, at random: files may lie class by class."""
        number = min(max(1, round(self.negatives * len(source))), len(source) - 1)
        order = torch.randperm(len(source), generator=common.child("negatives").torch())
        return order[number:].sort().values, order[:number].sort().values

    def _within_one(self, features: Tensor) -> Tensor:
        """What is longer than the public inputs' features, where those are the measure, is cut."""
        return features if self.scaled_by == "all" else features / features.norm(dim=1, keepdim=True).clamp_min(1.0)

    def _noise(self, client: ClientContext, examples: int, like: Tensor) -> Tensor:
        if self.epsilon is None:
            return torch.zeros_like(like)
        sensitivity = 2 / (examples * self.regularisation)
        deviation = math.sqrt(2 * math.log(1.25 / self.delta)) * sensitivity / self.epsilon
        return client.secret.child("privacy").noised(torch.zeros_like(like), deviation)


def fit(features: Tensor, signs: Tensor, regularisation: float) -> Tensor:
    """The logistic regression's minimiser, by Newton's method in double precision; the objective is strictly convex."""
    count, size = features.shape
    direction = torch.zeros(size, dtype=torch.float64)
    identity = regularisation * torch.eye(size, dtype=torch.float64)
    for _ in range(NEWTON_STEPS):
        wrong = (-signs * (features @ direction)).sigmoid()
        gradient = -(features * (signs * wrong).unsqueeze(1)).mean(dim=0) + regularisation * direction
        curvature = features.T @ (features * (wrong * (1 - wrong)).unsqueeze(1)) / count + identity
        step = torch.linalg.solve(curvature, gradient)
        direction = direction - step
        if float(step.norm()) <= 1e-10 * (1 + float(direction.norm())):
            break
    return direction


def _features(extractor: Tensor, client: ClientContext, source: Source) -> Tensor:
    prototype = client.task.prototype
    model = client.bank.lend(prototype, Weights(extractor, client.bank.layout(prototype)), role=EXTRACTOR)
    return features_on(source, model).double()
