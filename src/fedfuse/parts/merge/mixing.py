"""The base of merges that mix clients' models with each other before another merge is given the mixtures.

The other merge (``then``) is any of ours that looks at nothing but weights, its memory included. Only what is merged is
mixed: a fusion's teachers are the clients' own models, because a mean of neighbours does not know what each one does.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Update
from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ServerView
from fedfuse.parts.merge.base import Merge, Merged
from fedfuse.parts.merge.mixtures import Mixer


class MixingMerge(Merge):
    """Mix, then merge."""

    then: Merge

    def check(self, context: CheckContext) -> None:
        then = self.then
        if then.needs_source or then.needs_labels or then.changes_widths or then.reorders_units:
            raise ConfigError(
                f"method.merge {self.kind} gives merge {then.kind} mixtures of models, which it cannot work with; "
                "choose one that looks at nothing but weights, such as median"
            )
        then.check(context)

    @abstractmethod
    def shares(self, view: ServerView, prototype: str, updates: Sequence[Update]) -> Tensor:
        """A row for each mixture: what it has of each client; rows sum to one."""

    @abstractmethod
    def speaker(self, place: int, row: Tensor) -> int:
        """The place of the client in whose name a mixture is merged, another one for each."""

    def merge(self, view: ServerView, prototype: str, updates: Sequence[Update]) -> Merged:
        shares = self.shares(view, prototype, updates)
        mixtures = Mixer([update.weights for update in updates], shares).mixtures()
        mixed = [
            replace(updates[self.speaker(place, row)], weights=mixture, examples=_examples(updates, row))
            for place, (row, mixture) in enumerate(zip(shares, mixtures, strict=True))
        ]
        return self.then.merge(view, prototype, mixed)


def _examples(updates: Sequence[Update], row: Tensor) -> int:
    """A mixture stands for the examples of all who are in it."""
    return sum(update.examples for update, share in zip(updates, row.tolist(), strict=True) if share)
