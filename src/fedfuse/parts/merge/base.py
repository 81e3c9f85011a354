"""What a merge (aggregation, server optimizer) is: the weights of one prototype's clients into one set of weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from pydantic import Field

from fedfuse.core.messages import Tensors, Update
from fedfuse.core.weights import Weights, mean
from fedfuse.parts.base import MethodPart
from fedfuse.parts.context import ServerView

Weighting = Literal["examples", "uniform"]


@dataclass(frozen=True)
class Merged:
    """A prototype's merged weights, and what the merge must remember for the next round."""

    weights: Weights
    memory: Tensors = field(default_factory=dict)


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

    def offer(self, view: ServerView, prototype: str, client: int) -> Weights:
        """The weights that a client is sent, where it is sent any."""
        return view.weights[prototype]

    def broadcast(self, view: ServerView, prototype: str, clients: Sequence[int]) -> Mapping[int, Tensors]:
        """What this round's tasks carry for this merge, by client; ``clients`` are those of the prototype."""
        return {}

    @abstractmethod
    def merge(self, view: ServerView, prototype: str, updates: Sequence[Update]) -> Merged:
        """Combine at least one update; they come in client order."""


class WeightedMerge(Merge):
    """The base of merges in which clients count by their data, or all the same."""

    weighting: Weighting = Field("examples", description="examples: n_k / sum n_j as printed; uniform: 1/m")

    def average(self, updates: Sequence[Update]) -> Weights:
        """The (weighted) mean of parameters and floating buffers."""
        coefficients = [float(u.examples) if self.weighting == "examples" else 1.0 for u in updates]
        return mean([u.weights for u in updates], coefficients)
