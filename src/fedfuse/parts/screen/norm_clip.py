"""Norm clipping on the server (Sun et al., 2019): updates that are too long count as shorter ones.

    x_k <- x + min(1, M / |x_k - x|) (x_k - x)

M is fixed, or ``times`` the median length of the round's updates of the same prototype; a median of half of the clients
cannot be moved by the others. Whoever is merged or teaches does so with the clipped weights; BatchNorm statistics stay.
Link ``clip`` of ``upload`` does the same with clients that are honest enough to do it themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from fedfuse.core.messages import Update
from fedfuse.parts.context import ServerView
from fedfuse.parts.robust import by_prototype, length_of_move
from fedfuse.parts.screen.base import Screen, Screened
from fedfuse.parts.screen.norm_bound import longest


class NormClip(Screen):
    """Nobody moves the weights farther than the others do."""

    kind: Literal["norm_clip"] = "norm_clip"
    compares_weights: ClassVar[bool] = True
    norm: float | None = Field(None, gt=0, description="M: the longest update; else ``times`` decides")
    times: float = Field(1.0, gt=0, description="M in lengths of the round's median update, where no norm is given")

    def screen(self, view: ServerView, updates: Screened) -> Screened:
        factors: dict[int, float] = {}
        for own in by_prototype(updates.counted).values():
            lengths = {update.client: length_of_move(update, view) for update in own}
            limit = longest(list(lengths.values()), self.norm, self.times)
            factors |= {client: limit / length for client, length in lengths.items() if length > limit}
        clipped = {u.client: _clipped(u, view, factors) for u in (*updates.counted, *updates.teachers)}
        return replace(
            updates,
            counted=[clipped[update.client] for update in updates.counted],
            teachers=[clipped[update.client] for update in updates.teachers],
        )


def _clipped(update: Update, view: ServerView, factors: Mapping[int, float]) -> Update:
    if update.client not in factors:
        return update
    sent, brought = view.weights[update.prototype].parameters, update.weights.here
    nearer = sent + factors[update.client] * (brought.parameters - sent)
    return replace(update, weights=brought.with_parameters(nearer))
