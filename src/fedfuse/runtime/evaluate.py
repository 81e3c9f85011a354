"""Accuracy, loss and other metrics of a network, or of several networks asked together, on held-out examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedfuse.core.hashes import order_of
from fedfuse.core.slices import even_slices, slices
from fedfuse.data import Examples, Transform
from fedfuse.models.modes import evaluation_mode
from fedfuse.runtime.compute import Compute
from fedfuse.runtime.predict import in_small_batches

Values = Mapping[str, float | None]
"""Metrics by name; None where one has no value."""
Batches = Sequence[slice | Tensor]


@dataclass(frozen=True)
class Score:
    """Top-1 accuracy in [0, 1], mean cross-entropy, and what else the evaluator was told to measure."""

    accuracy: float
    loss: float
    metrics: Values = field(default_factory=dict)


@dataclass(frozen=True)
class Evaluator:
    """Scores predictions on one fixed set of un-augmented examples.

    With ``batch_statistics`` (the BatchNorm policy ``batch``) networks normalise by each batch. Batches then are mixed
    and of equal size, so that a score does not depend on how the examples lay.

    ``measure`` turns the logits of all examples, and their labels, into further metrics.
    """

    examples: Examples
    transform: Transform
    compute: Compute
    batch_size: int
    batch_statistics: bool = False
    measure: Callable[[Tensor, Tensor], Values] | None = None

    def __len__(self) -> int:
        return len(self.examples)

    def score(self, model: nn.Module) -> Score:
        """Score a network in eval mode, or with the statistics of each batch."""
        with evaluation_mode(model, self.batch_statistics):
            if self.batch_statistics:
                return self._score(model, self._mixed_batches)
            return self._score(partial(in_small_batches, model), self._batches)

    def score_logits(self, predict: Callable[[Tensor], Tensor]) -> Score:
        """Score anything that turns a batch of inputs into logits (or log-probabilities)."""
        return self._score(predict, self._batches)

    @property
    def _batches(self) -> Batches:
        return slices(len(self), self.batch_size)

    @cached_property
    def _mixed_batches(self) -> Batches:
        order = order_of(self.examples.inputs)
        return [order[where] for where in even_slices(len(self), self.batch_size)]

    @torch.inference_mode()
    def _score(self, predict: Callable[[Tensor], Tensor], batches: Batches) -> Score:
        if not len(self):
            raise ValueError("nothing to score on")
        correct, loss, answers = 0, 0.0, list[Tensor]()
        for where in batches:
            logits = predict(self.compute.inputs(self.transform(self.examples.inputs[where])))
            labels = self.examples.labels[where].to(logits.device)
            correct += int((logits.argmax(dim=1) == labels).sum())
            loss += float(F.cross_entropy(logits.double(), labels, reduction="sum"))
            if self.measure is not None:
                answers.append(logits.cpu())
        metrics = self._measured(_in_order(answers, batches)) if answers else {}
        return Score(correct / len(self), loss / len(self), metrics)

    def score_table(self, logits: Tensor) -> Score:
        """Score logits (or log-probabilities) that somebody else computed, one row for every example."""
        labels = self.examples.labels
        accuracy = float((logits.argmax(dim=1) == labels).double().mean())
        return Score(accuracy, float(F.cross_entropy(logits.double(), labels)), self._measured(logits))

    def _measured(self, logits: Tensor) -> Values:
        return self.measure(logits, self.examples.labels) if self.measure is not None else {}


def _in_order(answers: Sequence[Tensor], batches: Batches) -> Tensor:
    """What was answered batch by batch, as one table in the order of the examples."""
    table = torch.cat(list(answers))
    for where, answer in zip(batches, answers, strict=True):
        table[where] = answer
    return table
