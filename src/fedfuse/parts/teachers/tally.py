"""An ensemble's answer to some inputs, to which teachers are added one at a time."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from fedfuse.parts.scores import Coefficient
from fedfuse.parts.teachers.question import Target


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
        return average.log_softmax(dim=1) if self.target == "mean_logits" else average.clamp_min(1e-30).log()


def of_mean_one(weights: Sequence[Coefficient]) -> tuple[Coefficient, ...]:
    """Weights scaled to a mean of 1, so that equal ones are exactly 1 and leave a plain mean, bit for bit."""
    total = sum(weights)
    if isinstance(total, Tensor):
        total = total.clamp_min(1e-12)  # a class that no teacher has anything to say about
    return tuple(weight * len(weights) / total for weight in weights)
