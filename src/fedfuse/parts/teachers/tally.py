"""An ensemble's answer to some inputs, to which teachers are added one at a time."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fedfuse.parts.scores import Coefficient
from fedfuse.parts.teachers.question import Target, Together


class Tally:
    """The sum of what teachers said so far. Nothing else of a teacher is needed once it was heard.

    Teachers are added in their own order, because a sum of floating numbers depends on it. ``has_weights`` says that
    the last column of what they say is how much they count on each input.
    """

    def __init__(self, target: Target, has_weights: bool = False) -> None:
        self.target = target
        self.has_weights = has_weights
        self._total: Tensor | None = None
        self._heard = 0

    def add(self, said: Tensor, coefficient: Coefficient = 1.0) -> None:
        """The next teacher's share, which counts that much; the coefficients of all teachers have a mean of 1."""
        share = coefficient * said
        self._total = share if self._total is None else self._total.add_(share)
        self._heard += 1

    def log_probabilities(self) -> Tensor:
        """The answer of those that were heard."""
        assert self._total is not None, "an ensemble has at least one teacher"
        average = self._total / self._heard
        if self.has_weights:
            average = average[:, :-1] / average[:, -1:].clamp_min(1e-30)
        return self._as_target(average)

    def _as_target(self, average: Tensor) -> Tensor:
        return average.log_softmax(dim=1) if self.target == "mean_logits" else average.clamp_min(1e-30).log()


class JointTally(Tally):
    """Where teachers count by what they say beside the others, all that they say is held until the last was heard."""

    def __init__(self, target: Target, together: Together) -> None:
        super().__init__(target)
        self._together = together
        self._said: list[Tensor] = []
        self._coefficients: list[Coefficient] = []

    def add(self, said: Tensor, coefficient: Coefficient = 1.0) -> None:
        self._said.append(said)
        self._coefficients.append(coefficient)

    def log_probabilities(self) -> Tensor:
        weights = self._together(torch.stack(self._said)).to(self._said[0].dtype)
        joint = [weight * coefficient for weight, coefficient in zip(weights, self._coefficients, strict=True)]
        total = torch.stack([weight * said for weight, said in zip(joint, self._said, strict=True)]).sum(dim=0)
        return self._as_target(total / torch.stack(joint).sum(dim=0).clamp_min(1e-12))


def of_mean_one(weights: Sequence[Coefficient]) -> tuple[Coefficient, ...]:
    """Weights scaled to a mean of 1, so that equal ones are exactly 1 and leave a plain mean, bit for bit."""
    total = sum(weights)
    if isinstance(total, Tensor):
        total = total.clamp_min(1e-12)  # a class that no teacher has anything to say about
    return tuple(weight * len(weights) / total for weight in weights)
