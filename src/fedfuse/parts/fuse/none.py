"""No fusion: the merged weights are the round's result, as in FedAvg."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from fedfuse.core.messages import Update
from fedfuse.core.weights import Weights
from fedfuse.parts.context import ServerView
from fedfuse.parts.fuse.base import Fuse, Fused, Reads


class NoFusion(Fuse):
    """Leave the merged weights as they are."""

    kind: Literal["none"] = "none"
    needs_source: ClassVar[bool] = False
    reads: ClassVar[Reads] = "nothing"
    makes_students: ClassVar[bool] = False

    def fuse(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> Fused:
        return Fused(merged)

    def ensemble(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> None:
        return None
