"""Random weights, as nearly every method begins."""

from __future__ import annotations

from typing import ClassVar, Literal

from fedfuse.core.weights import Weights
from fedfuse.parts.context import ServerView
from fedfuse.parts.start.base import Start


class Fresh(Start):
    """The architecture's own random initialisation."""

    kind: Literal["fresh"] = "fresh"
    is_work: ClassVar[bool] = False

    def begin(self, view: ServerView, prototype: str) -> Weights:
        return self.fresh(view, prototype)
