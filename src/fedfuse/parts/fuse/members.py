"""Who teaches: the clients, their average, or models sampled around them (FedBE, Chen and Chao, 2021; SWAG).

A client counts as much as ``fuse.weighting`` says; an average or a sample as much as the mean of the clients it is made
of, so that making more or fewer samples never changes how those clients compare with each other.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.choice import OneOf
from fedfuse.core.messages import Update
from fedfuse.core.part import Part
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights, mean
from fedfuse.parts.fuse.teachers import Teacher
from fedfuse.parts.fuse.weighting import Coefficient


@dataclass(frozen=True)
class RoundModels:
    """What teachers can be made from: this round's clients and what they were merged into.

    ``trust`` is the weight of each client as a teacher, on any scale; without it all count the same.
    """

    updates: Sequence[Update]
    merged: Mapping[str, Weights]
    previous: Mapping[str, Weights]
    key: Key
    trust: Mapping[int, Coefficient] = field(default_factory=dict)
    reestimated: Callable[[str, Weights], Weights] | None = None
    """A model with BatchNorm statistics of its own, where there are inputs to estimate them on."""

    def weight(self, update: Update) -> Coefficient:
        return self.trust.get(update.client, 1.0)

    def weight_of(self, prototype: str) -> Coefficient:
        """What a model made of a prototype's clients counts: their mean, or everybody's if none of them teaches."""
        own = self.by_prototype().get(prototype) or self.updates
        return sum(self.weight(update) for update in own) / len(own)

    def by_prototype(self) -> dict[str, list[Update]]:
        groups: dict[str, list[Update]] = {}
        for update in self.updates:
            groups.setdefault(update.prototype, []).append(update)
        return groups


class TeacherKind(Part):
    """One kind of teacher."""

    kind: str

    @property
    def compares_widths(self) -> bool:
        """Whether it subtracts the server's weights from the clients'."""
        return False

    @property
    def reestimates(self) -> bool:
        """Whether it needs public inputs to estimate BatchNorm statistics on."""
        return False

    @abstractmethod
    def gather(self, models: RoundModels) -> list[Teacher]:
        """The teachers of this kind, in an order that does not depend on when updates came in."""


class ClientTeachers(TeacherKind):
    """The clients' own models (C of FedBE's Table 2); alone, FedDF's ensemble."""

    kind: Literal["clients"] = "clients"

    def gather(self, models: RoundModels) -> list[Teacher]:
        return [Teacher(update.prototype, update.weights, models.weight(update)) for update in models.updates]


class AverageTeacher(TeacherKind):
    """The merged model of every prototype (FedAvg in FedBE's Table 2)."""

    kind: Literal["average"] = "average"

    def gather(self, models: RoundModels) -> list[Teacher]:
        return [
            Teacher(prototype, weights, models.weight_of(prototype)) for prototype, weights in models.merged.items()
        ]


class SampledTeachers(TeacherKind):
    """Models sampled around the clients of each prototype; they count as the mean of those clients."""

    number: int = Field(10, ge=1, description="samples per prototype (M of FedBE)")
    batch_norm: Literal["average", "reestimate"] = Field(
        "average",
        description="BatchNorm statistics of a sample: the average's, or computed anew on the public inputs, as SWAG "
        "and FedDF's code for it",
    )

    @property
    def reestimates(self) -> bool:
        return self.batch_norm == "reestimate"

    @abstractmethod
    def samples(self, models: RoundModels, prototype: str, updates: Sequence[Update]) -> Iterator[Weights]:
        """The models sampled around these clients."""

    def gather(self, models: RoundModels) -> list[Teacher]:
        return [
            Teacher(prototype, self._settled(models, prototype, sampled), models.weight_of(prototype))
            for prototype, updates in models.by_prototype().items()
            for sampled in self.samples(models, prototype, updates)
        ]

    def _settled(self, models: RoundModels, prototype: str, sampled: Weights) -> Weights:
        if not self.reestimates or not sampled.layout.buffers:
            return sampled
        assert models.reestimated is not None, "checked before round 1"
        return models.reestimated(prototype, sampled)


class GaussianTeachers(SampledTeachers):
    """Samples from a diagonal Gaussian over the clients' weights (FedBE, equation 5).

        mu = sum_i (|D_i| / |D|) w_i,   Sigma = diag( sum_i (|D_i| / |D|) (w_i - mu)^2 ),   w ~ N(mu, Sigma)

    As coded, each tensor's update direction u_i = (w_i - w) / ||w_i - w|| is averaged and varied instead, with its
    deviation scaled by 0.1, and applied with the clients' mean update length. BatchNorm statistics are not sampled: a
    variance could be negative.
    """

    kind: Literal["gaussian"] = "gaussian"
    form: Literal["as_printed", "as_coded"] = "as_printed"
    scale: float | None = Field(None, ge=0, description="factor on the deviation; 1 as printed, 0.1 as coded")

    @property
    def compares_widths(self) -> bool:
        return self.form == "as_coded"

    def samples(self, models: RoundModels, prototype: str, updates: Sequence[Update]) -> Iterator[Weights]:
        centre = mean([u.weights for u in updates], [float(u.examples) for u in updates])
        random = models.key.child("gaussian", prototype).torch()
        for _ in range(self.number):
            if self.form == "as_printed":
                sampled = self._printed(updates, centre, random)
            else:
                sampled = self._coded(updates, models.previous[prototype], random)
            yield centre.with_parameters(sampled)

    def _printed(self, updates: Sequence[Update], centre: Weights, random: torch.Generator) -> Tensor:
        total = sum(u.examples for u in updates)
        spread = sum((u.examples / total) * (u.weights.parameters - centre.parameters) ** 2 for u in updates)
        deviation = torch.as_tensor(spread).sqrt() * (1.0 if self.scale is None else self.scale)
        return centre.parameters + deviation * torch.randn(deviation.shape, generator=random)

    def _coded(self, updates: Sequence[Update], previous: Weights, random: torch.Generator) -> Tensor:
        sampled = []
        for entry in previous.layout.entries[: len(previous.layout.parameters)]:
            moves = torch.stack([(u.weights[entry.name] - previous[entry.name]).reshape(-1) for u in updates])
            lengths = moves.norm(dim=1, keepdim=True)
            directions = moves / lengths.clamp_min(1e-12)
            deviation = directions.var(dim=0, unbiased=False).clamp_min(1e-5).sqrt()
            scale = 0.1 if self.scale is None else self.scale
            direction = directions.mean(dim=0) + scale * deviation * torch.randn(deviation.shape, generator=random)
            sampled.append(previous[entry.name].reshape(-1) + direction * lengths.mean())
        return torch.cat(sampled)


class DirichletTeachers(SampledTeachers):
    """Samples from the simplex spanned by the clients (FedBE, equation 7).

    gamma ~ Dir(alpha),   w = sum_i gamma_i |D_i| w_i / sum_i gamma_i |D_i|
    """

    kind: Literal["dirichlet"] = "dirichlet"
    alpha: float = Field(1.0, gt=0)
    by_examples: bool = Field(True, description="weigh clients by |D_i| as printed; the released code does not")

    def samples(self, models: RoundModels, prototype: str, updates: Sequence[Update]) -> Iterator[Weights]:
        random = models.key.child("dirichlet", prototype).numpy()
        sizes = np.array([u.examples if self.by_examples else 1 for u in updates], dtype=float)
        for gamma in random.dirichlet([self.alpha] * len(updates), size=self.number):
            yield mean([u.weights for u in updates], (gamma * sizes).tolist())


class SwagTeachers(SampledTeachers):
    """Samples from a Gaussian with diagonal and low-rank covariance over the clients' weights.

    SWAG (Maddox et al., A Simple Baseline for Bayesian Uncertainty in Deep Learning, NeurIPS 2019) with clients in the
    place of the iterates of SGD; FedDF's Table 7 teaches with it. m clients, all counting the same:

        mu = (1/m) sum_i w_i,   diag = (1/m) sum_i (w_i - mu)^2,   D = [w_i - mu], K = min(rank, m) columns
        w = mu + (1/sqrt 2) diag^(1/2) eps_1 + (1/sqrt(2 (K - 1))) D eps_2,   eps_1, eps_2 ~ N(0, I)

    SWAG keeps the latest K iterates in D; clients have no order, so K of them are drawn.
    """

    kind: Literal["swag"] = "swag"
    rank: int = Field(20, ge=2, description="most clients in the low-rank part (K of the paper)")
    scale: float = Field(1.0, ge=0, description="factor on the deviation from the mean; 1 is SWAG")

    def samples(self, models: RoundModels, prototype: str, updates: Sequence[Update]) -> Iterator[Weights]:
        centre = mean([u.weights for u in updates], [1.0] * len(updates))
        random = models.key.child("swag", prototype).torch()
        deviations = torch.stack([u.weights.parameters - centre.parameters for u in updates])
        diagonal = deviations.square().mean(dim=0).sqrt()
        low_rank = deviations[torch.randperm(len(updates), generator=random)[: self.rank]]
        for _ in range(self.number):
            yield centre.with_parameters(centre.parameters + self.scale * _swag_deviation(diagonal, low_rank, random))


def _swag_deviation(diagonal: Tensor, low_rank: Tensor, random: torch.Generator) -> Tensor:
    columns = len(low_rank)
    independent = diagonal * torch.randn(diagonal.shape, generator=random) / math.sqrt(2)
    if columns < 2:
        return independent  # one client does not deviate from itself
    return independent + torch.randn(columns, generator=random) @ low_rank / math.sqrt(2 * (columns - 1))


AnyTeacher = Annotated[
    TeacherKind, OneOf(ClientTeachers, AverageTeacher, GaussianTeachers, DirichletTeachers, SwagTeachers)
]
