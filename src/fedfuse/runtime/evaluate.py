"""Accuracy and loss of a network, or of several networks asked together, on held-out examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedfuse.core.hashes import order_of
from fedfuse.data import Examples, Transform
from fedfuse.runtime.batch_norm import batch_norms_training
from fedfuse.runtime.batches import even_slices, slices
from fedfuse.runtime.compute import Compute


@dataclass(frozen=True)
class Score:
    """Top-1 accuracy in [0, 1] and mean cross-entropy."""

    accuracy: float
    loss: float


@dataclass(frozen=True)
class Evaluator:
    """Scores predictions on one fixed set of un-augmented examples.

    With ``batch_statistics`` (the BatchNorm policy ``batch``) networks normalise by each batch. Batches then are mixed
    and of equal size, so that a score does not depend on how the examples lay.
    """

    examples: Examples
    transform: Transform
    compute: Compute
    batch_size: int
    batch_statistics: bool = False

    def __len__(self) -> int:
        return len(self.examples)

    def score(self, model: nn.Module) -> Score:
        """Score a network in eval mode, or with the statistics of each batch."""
        with evaluation_mode(model, self.batch_statistics):
            return self._score(model, self._mixed_batches if self.batch_statistics else self._batches)

    def score_logits(self, predict: Callable[[Tensor], Tensor]) -> Score:
        """Score anything that turns a batch of inputs into logits (or log-probabilities)."""
        return self._score(predict, self._batches)

    @property
    def _batches(self) -> Sequence[slice | Tensor]:
        return slices(len(self), self.batch_size)

    @cached_property
    def _mixed_batches(self) -> Sequence[slice | Tensor]:
        order = order_of(self.examples.inputs)
        return [order[where] for where in even_slices(len(self), self.batch_size)]

    @torch.inference_mode()
    def _score(self, predict: Callable[[Tensor], Tensor], batches: Sequence[slice | Tensor]) -> Score:
        if not len(self):
            raise ValueError("nothing to score on")
        correct, loss = 0, 0.0
        for where in batches:
            logits = predict(self.compute.inputs(self.transform(self.examples.inputs[where])))
            labels = self.examples.labels[where].to(logits.device)
            correct += int((logits.argmax(dim=1) == labels).sum())
            loss += float(F.cross_entropy(logits.double(), labels, reduction="sum"))
        return Score(correct / len(self), loss / len(self))

    def score_table(self, logits: Tensor) -> Score:
        """Score logits (or log-probabilities) that somebody else computed, one row for every example."""
        labels = self.examples.labels
        return Score(
            float((logits.argmax(dim=1) == labels).double().mean()), float(F.cross_entropy(logits.double(), labels))
        )


@contextmanager
def evaluation_mode(model: nn.Module, batch_statistics: bool = False) -> Iterator[None]:
    """Put a network into eval mode inside the block, and back into the mode it had.

    With ``batch_statistics`` the norm layers normalise by each batch, and their running statistics are
    put back afterwards, so that looking at a model never changes it.
    """
    if batch_statistics:
        with batch_norms_training(model) as layers:
            saved = [(buffer, buffer.clone()) for layer in layers for buffer in layer.buffers()]
            try:
                yield
            finally:
                for buffer, value in saved:
                    buffer.copy_(value)
        return
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
