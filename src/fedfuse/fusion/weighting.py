"""How much each client's opinion counts in the ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from fedfuse.core.messages import Update
from fedfuse.runtime.view import ServerView

TeacherWeighting = Literal["uniform", "examples", "validation"]
"""uniform: 1/m (FedDF, FedBE). examples: n_k / sum n_j (FedED's w0). validation: each client's accuracy on the
server's validation split over the sum of all (the "weighted teaching" of FedDF's released code)."""


def client_weights(weighting: TeacherWeighting, view: ServerView, updates: Sequence[Update]) -> dict[int, float]:
    """A weight for each client, not normalised."""
    if weighting == "uniform":
        return {u.client: 1.0 for u in updates}
    if weighting == "examples":
        return {u.client: float(u.examples) for u in updates}
    weights = {u.client: _accuracy(view, u) for u in updates}
    return weights if any(weights.values()) else dict.fromkeys(weights, 1.0)  # all at zero: nothing to choose by


def _accuracy(view: ServerView, update: Update) -> float:
    assert view.validation is not None, "checked before round 1"
    return view.validation.score(view.bank.lend(update.prototype, update.weights)).accuracy
