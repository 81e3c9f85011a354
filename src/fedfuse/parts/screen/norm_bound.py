"""A norm bound (Sun et al., Can You Really Backdoor Federated Learning?, 2019): updates that are too long do not count.

|x_k - x| <= M,     M fixed, or ``times`` the median length of the round's updates of the same prototype
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from fedfuse.parts.context import ServerView
from fedfuse.parts.robust import by_prototype, length_of_move
from fedfuse.parts.screen.base import Screen, Screened, without


class NormBound(Screen):
    """Leave out clients that moved the weights too far."""

    kind: Literal["norm_bound"] = "norm_bound"
    compares_weights: ClassVar[bool] = True
    norm: float | None = Field(None, gt=0, description="M: the longest update that counts; else ``times`` decides")
    times: float = Field(3.0, ge=1, description="M in lengths of the round's median update, where no norm is given")

    def screen(self, view: ServerView, updates: Screened) -> Screened:
        reasons: dict[int, str] = {}
        for own in by_prototype(updates.counted).values():
            lengths = {update.client: length_of_move(update, view) for update in own}
            limit = longest(list(lengths.values()), self.norm, self.times)
            reasons |= {c: f"moved {length:.3g}, above {limit:.3g}" for c, length in lengths.items() if length > limit}
        return without(updates, reasons)


def longest(lengths: list[float], norm: float | None, times: float) -> float:
    """M."""
    ordered, middle = sorted(lengths), len(lengths) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return times * median if norm is None else norm
