"""The average of FedAvg (McMahan et al., 2017):  x_t = sum_k (n_k / sum_j n_j) xhat_k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from fedfuse.core.messages import Update
from fedfuse.merge.base import Merge, Merged
from fedfuse.runtime.view import ServerView


class Mean(Merge):
    """Weighted mean of the clients' weights."""

    kind: Literal["mean"] = "mean"

    def merge(self, view: ServerView, prototype: str, updates: Sequence[Update]) -> Merged:  # noqa: ARG002
        return Merged(self.average(updates))
