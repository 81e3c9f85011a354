"""An ensemble that is measured but not distilled: 1-Ensemble of FedBE, or any round's ensemble beside FedAvg."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Literal

from torch import Tensor

from fedfuse.core.messages import Update
from fedfuse.core.weights import Weights
from fedfuse.fusion.base import Fuse, Fused
from fedfuse.fusion.members import AnyMembers, ClientMembers, Staff, assemble
from fedfuse.fusion.teachers import Target
from fedfuse.runtime.view import ServerView


class EnsembleOnly(Fuse):
    """Leave the merged weights as they are, and report how good the ensemble would be."""

    kind: Literal["ensemble_only"] = "ensemble_only"
    needs_source: ClassVar[bool] = False
    teachers: tuple[AnyMembers, ...] = (ClientMembers(),)
    target: Target = "mean_probabilities"

    def fuse(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> Fused:  # noqa: ARG002
        return Fused(merged)

    def ensemble(
        self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]
    ) -> Callable[[Tensor], Tensor]:
        staff = Staff(teachers, merged, view.weights, view.key.child("teachers"))
        return assemble(view.bank, self.teachers, staff, self.target).log_probabilities
