"""How much each client's opinion counts in the ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from torch import Tensor

from fedfuse.core.messages import Update
from fedfuse.parts.context import ServerView

TeacherWeighting = Literal["uniform", "examples", "validation", "testimony"]
"""uniform: 1/m (FedDF, FedBE). examples: n_k / sum n_j (FedED's w0). validation: each client's accuracy on the
server's validation split over the sum of all (the "weighted teaching" of FedDF's released code). testimony: input by
input, as the exchange's weighting makes it from what clients said of themselves (FedAUX; FedED's w1 and w2)."""

Coefficient = float | Tensor
"""How much a teacher counts: everywhere the same, or a table of public inputs x classes."""


def client_weights(weighting: TeacherWeighting, view: ServerView, updates: Sequence[Update]) -> dict[int, Coefficient]:
    """A weight for each client, not normalised."""
    if weighting == "uniform":
        return {u.client: 1.0 for u in updates}
    if weighting == "examples":
        return {u.client: float(u.examples) for u in updates}
    if weighting == "testimony":
        return _tables(view, updates)
    weights = [_accuracy(view, u) for u in updates]
    if not any(weights):
        weights = [1.0] * len(updates)  # all at zero: nothing to choose by
    return {u.client: weight for u, weight in zip(updates, weights, strict=True)}


def _tables(view: ServerView, updates: Sequence[Update]) -> dict[int, Coefficient]:
    assert view.source is not None, "checked before round 1"
    shape, device = (len(view.source), view.bank.classes), view.bank.compute.device
    return {u.client: share.expand(shape).to(device) for u, share in zip(updates, view.shares, strict=True)}


def _accuracy(view: ServerView, update: Update) -> float:
    assert view.validation is not None, "checked before round 1"
    return view.validation.score(view.bank.lend(update.prototype, update.weights)).accuracy
