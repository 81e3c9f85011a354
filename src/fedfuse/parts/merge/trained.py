"""Merges of trained models of one architecture, in a federation or outside of one.

In a federation the models are the clients' and the base is what they were sent. Such a merge remembers nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import Field
from torch import Tensor, nn

from fedfuse.core.messages import Update
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights, mean, shares
from fedfuse.parts.context import ServerView
from fedfuse.parts.merge.base import Merge, Merged, WeightedMerge, Weighting
from fedfuse.runtime.evaluate import Score


@dataclass(frozen=True)
class TrainedModels:
    """Models of one architecture, and what a merge may ask about them.

    ``shares`` sum to one, ``names`` tell the models apart wherever random numbers are drawn. ``network`` lends a
    network that holds the weights until it is asked again, ``batches`` are at most so many inputs to ask the model of
    this name about, ``score`` is how good weights are on labelled examples that nothing was trained on.
    """

    models: Sequence[Weights]
    base: Weights
    shares: Sequence[float]
    names: Sequence[str]
    key: Key
    network: Callable[[Weights], nn.Module]
    batches: Callable[[str, int], Iterator[Tensor]]
    score: Callable[[Weights], Score]

    def mean(self) -> Weights:
        """Of parameters and floating buffers."""
        return mean(self.models, self.shares)


class ModelMerge(Merge):
    """The base of merges that look at nothing but trained models, and at public inputs or validation examples."""

    @abstractmethod
    def coefficients(self, examples: Sequence[int]) -> list[float]:
        """How much models count that were trained on so many examples."""

    @abstractmethod
    def combine(self, trained: TrainedModels) -> Weights:
        """One set of weights of at least one model."""

    def merge(self, view: ServerView, prototype: str, updates: Sequence[Update]) -> Merged:
        trained = TrainedModels(
            models=[update.weights for update in updates],
            base=view.weights[prototype],
            shares=shares(self.coefficients([update.examples for update in updates])),
            names=[str(update.client) for update in updates],
            key=view.key,
            network=partial(view.bank.lend, prototype),
            batches=partial(_public, view),
            score=partial(view.score, prototype),
        )
        return Merged(self.combine(trained))


class UniformMerge(WeightedMerge):
    """The base of merges in which models count the same unless it is said otherwise."""

    weighting: Weighting = Field("uniform", description="uniform: 1/m as printed; examples: n_k / sum n_j")


def _public(view: ServerView, _model: str, most: int) -> Iterator[Tensor]:
    """Some public inputs: the same ones for all, however the source lay."""
    source = view.public
    yield from map(source.inputs, source.batches(source.mixed[:most]))
