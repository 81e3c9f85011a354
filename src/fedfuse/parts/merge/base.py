"""What a merge (aggregation, server optimizer) is: the weights of one prototype's clients into one set of weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal

from pydantic import Field

from fedfuse.core.messages import Tensors, Update
from fedfuse.core.weights import Average, Weights, mean, shares
from fedfuse.parts.accumulator import Accumulator
from fedfuse.parts.base import MethodPart
from fedfuse.parts.context import ServerView

Weighting = Literal["examples", "uniform"]


@dataclass(frozen=True)
class Merged:
    """A prototype's merged weights, and what the merge must remember for the next round."""

    weights: Weights
    memory: Tensors = field(default_factory=dict)
    last: Weights | None = None
    """The last client's weights in the order of the merged ones, where that may be another than its own."""


class Merge(MethodPart):
    """Aggregation: weights to weights, inside one prototype; ``view.memory`` is this prototype's own.

    The median of every parameter, in a file of one's own, as ``merge: {kind: "my_file:Median"}``:

    >>> class Median(fedfuse.Merge):
    ...     def merge(self, view, prototype, updates):
    ...         flat = torch.stack([update.weights.flat for update in updates]).median(dim=0).values
    ...         return fedfuse.Merged(fedfuse.Weights(flat, updates[0].weights.layout))
    """

    changes_widths: ClassVar[bool] = False
    """Whether the merged network's layers may have other widths than the clients'."""
    reorders_units: ClassVar[bool] = False
    """Whether a unit of the merged network may have had another place in a client's."""

    def offer(self, view: ServerView, prototype: str, client: int) -> Weights:
        """The weights that a client is sent, where it is sent any."""
        return view.weights[prototype]

    def broadcast(self, view: ServerView, prototype: str, clients: Sequence[int]) -> Mapping[int, Tensors]:
        """What this round's tasks carry for this merge, by client; ``clients`` are those of the prototype."""
        return {}

    @abstractmethod
    def merge(self, view: ServerView, prototype: str, updates: Sequence[Update]) -> Merged:
        """Combine at least one update; they come in client order."""

    def accumulator(self, view: ServerView, prototype: str, examples: Sequence[int]) -> MergeAccumulator:
        """The same one by one, of updates of which it is known before how many ``examples`` each stands for."""
        raise NotImplementedError


class MergeAccumulator(Accumulator):
    """A merge that takes the updates of one prototype one by one."""

    @abstractmethod
    def merged(self) -> Merged:
        """What all of them come to."""


class WeightedMerge(Merge):
    """The base of merges in which clients count by their data, or all the same."""

    weighting: Weighting = Field("examples", description="examples: n_k / sum n_j as printed; uniform: 1/m")

    @property
    def counts_examples(self) -> bool:
        return self.weighting == "examples"

    def coefficients(self, examples: Sequence[int]) -> list[float]:
        """How much clients count that have so many examples."""
        return [float(number) if self.weighting == "examples" else 1.0 for number in examples]

    def average(self, updates: Sequence[Update]) -> Weights:
        """The (weighted) mean of parameters and floating buffers."""
        return mean([u.weights for u in updates], self.coefficients([u.examples for u in updates]))


class AveragingMerge(WeightedMerge):
    """The base of merges that need nothing of the updates but their (weighted) mean, buffers included."""

    @abstractmethod
    def step(self, view: ServerView, prototype: str, average: Weights) -> Merged:
        """What becomes of the average."""

    def merge(self, view: ServerView, prototype: str, updates: Sequence[Update]) -> Merged:
        return self.step(view, prototype, self.average(updates))

    def accumulator(self, view: ServerView, prototype: str, examples: Sequence[int]) -> MergeAccumulator:
        return _Averaging(partial(self.step, view, prototype), shares(self.coefficients(examples)))


class _Averaging(MergeAccumulator):
    def __init__(self, step: Callable[[Weights], Merged], shares: Sequence[float]) -> None:
        self.step, self.shares = step, iter(shares)
        self.average: Average | None = None

    def add(self, update: Update) -> None:
        self.average = self.average or Average(update.weights)
        self.average.add(update.weights, next(self.shares))

    def merged(self) -> Merged:
        assert self.average is not None, "at least one update"
        return self.step(self.average.result())
