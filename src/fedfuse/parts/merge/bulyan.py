"""Bulyan (El Mhamdi, Guerraoui and Rouault, The Hidden Vulnerability of Distributed Learning in Byzantium, ICML 2018).

    choose   n - 2 f clients, one after another: the best by Krum of those that are left
    merge    of each number, the mean of the n - 4 f chosen ones that are nearest to their median

It needs n >= 4 f + 3. A client that is near the others as a whole, and far off in one number, is not heard there. Who
is not chosen still teaches a fusion; ``screen: multi_krum`` leaves clients out of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.messages import Tensors, Update
from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ServerView
from fedfuse.parts.merge.robust import RobustMerge, medians
from fedfuse.parts.robust import HOSTILE, Hostile, borne, check_enough, check_pairs, rows, squared_distances
from fedfuse.parts.screen.krum import krum_scores


def needed(hostile: int) -> int:
    """Clients that Bulyan needs for so many hostile ones."""
    return 4 * hostile + 3


class Bulyan(RobustMerge):
    """Krum again and again, then a mean around the median."""

    kind: Literal["bulyan"] = "bulyan"
    hostile: Hostile = Field(0.1, description=HOSTILE)

    def check(self, context: CheckContext) -> None:
        check_enough(context, "method.merge bulyan", self.hostile, needed)
        check_pairs(context, "method.merge bulyan")

    def parameters(self, view: ServerView, prototype: str, updates: Sequence[Update]) -> tuple[Tensor, Tensors]:
        weights, base = [update.weights for update in updates], view.weights[prototype]
        hostile = max(0, borne(view, "merge bulyan", self.hostile, len(weights), needed))
        kept = [weights[place] for place in chosen(squared_distances(weights, base), hostile)]
        nearest = max(1, len(kept) - 2 * hostile)
        count = base.layout.parameter_count
        return torch.cat([around_median(piece, nearest).float() for piece in rows(kept, count)]), {}


def chosen(distances: Tensor, hostile: int) -> list[int]:
    """The places of n - 2 f clients, in the order in which Krum takes them."""
    left, taken = list(range(len(distances))), list[int]()
    while len(taken) < max(1, len(distances) - 2 * hostile):
        best = int(krum_scores(distances[left][:, left], hostile).argmin())
        taken.append(left.pop(best))
    return taken


def around_median(values: Tensor, number: int) -> Tensor:
    """Of each column, the mean of so many numbers that are nearest to its median."""
    apart = (values - medians(values)).abs()
    order = apart.argsort(dim=0, stable=True)[:number]
    mean: Tensor = values.gather(0, order).mean(dim=0)
    return mean
