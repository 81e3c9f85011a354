"""Which models a fusion trains when it reads clients' weights, and from where each of them starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from fedfuse.core.weights import Weights
from fedfuse.parts.context import ServerView
from fedfuse.parts.fuse.base import Fuse


class StudentFuse(Fuse):
    """The base of fusions with one student per prototype, which starts where its clients' average is."""

    start: Literal["average", "previous"] = Field(
        "average", description="weights a student starts from (FedDF Table 5)"
    )
    absent: Literal["fuse", "keep"] = Field(
        "fuse",
        description="models that no client of the round runs. fuse: they learn from everybody else, starting from "
        "their previous weights (FedDF, Algorithm 3); keep: they stay as they are, as FedDF's code",
    )

    def trains_without_clients(self, prototype: str) -> bool:
        return self.absent == "fuse"

    def starts(self, view: ServerView, merged: Mapping[str, Weights]) -> dict[str, Weights]:
        """Where each of this round's students starts."""
        students = [p for p in view.bank.prototypes if p in merged or self.absent == "fuse"]
        return {p: merged[p] if p in merged and self.start == "average" else view.weights[p] for p in students}
