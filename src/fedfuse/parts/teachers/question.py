"""What a teacher is asked by itself, in this process or in another one, and what it puts into the ensemble's answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from fedfuse.core.weights import Weights
from fedfuse.models.modes import evaluation_mode
from fedfuse.parts.scores import Coefficient
from fedfuse.runtime.bank import TEACHER, ModelBank
from fedfuse.runtime.predict import in_small_batches

Target = Literal["mean_logits", "mean_probabilities"]
"""mean_logits: average logits, then softmax (FedDF). mean_probabilities: average softmax outputs (FedBE, FedED)."""

Weigh = Callable[[Tensor], Tensor]
"""From a teacher's probabilities to how much it counts on each input, n x 1."""

Together = Callable[[Tensor], Tensor]
"""From what all teachers say, teachers x inputs x classes, to how much of it counts."""

InputBatch = Callable[[], Tensor]
"""Makes a batch of inputs, wherever a teacher is asked about them."""


@dataclass(frozen=True)
class Teacher:
    """One model of the ensemble, and how much it counts beside the others (any scale, the sum positive)."""

    prototype: str
    weights: Weights
    weight: Coefficient = 1.0
    loudness: float = 1.0
    """What its logits are multiplied by."""


@dataclass(frozen=True)
class Question:
    """Some batches of inputs, about which teachers are asked."""

    bank: ModelBank
    batches: Sequence[InputBatch]
    target: Target
    weigh: Weigh | None = None

    def __call__(self, teacher: Teacher) -> Tensor:
        """What the teacher puts into the target, one row for each input; how much it counts as a whole is not asked."""
        with self.bank.compute.at_work(), asked(self.bank, teacher) as model:
            said = (in_small_batches(model, inputs()) for inputs in self.batches)
            return torch.cat([share(self.target, logits, self.weigh) for logits in said])


def share(target: Target, logits: Tensor, weigh: Weigh | None = None) -> Tensor:
    """What the ensemble averages."""
    said = logits if target == "mean_logits" else logits.softmax(dim=1)
    if weigh is None:
        return said
    weight = weigh(logits.softmax(dim=1))
    return torch.cat([weight * said, weight], dim=1)


@contextmanager
def asked(bank: ModelBank, teacher: Teacher) -> Iterator[Callable[[Tensor], Tensor]]:
    """The teacher's network, to be asked and not to be trained."""
    model = bank.lend_to_ask(teacher.prototype, teacher.weights, role=TEACHER)
    with torch.no_grad(), evaluation_mode(model):
        yield model if teacher.loudness == 1 else lambda inputs: teacher.loudness * model(inputs)
