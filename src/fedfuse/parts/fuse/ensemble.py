"""An ensemble of this round's models: its members, and the fusion that only measures it (1-Ensemble of FedBE)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Update
from fedfuse.core.weights import Weights
from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ServerView
from fedfuse.parts.fuse.auto_target import chosen
from fedfuse.parts.fuse.base import Fuse, Fused
from fedfuse.parts.scores import ByComparison, ByOutputs
from fedfuse.parts.teachers import AnyTeacher, ClientTeachers, Ensemble, RoundModels, Target


class EnsembleFuse(Fuse):
    """The base of fusions that ask an ensemble."""

    usual_target: ClassVar[Target] = "mean_logits"
    teachers: tuple[AnyTeacher, ...] = Field((ClientTeachers(),), min_length=1, description="who is in the ensemble")
    target: Target | Literal["auto"] = Field(
        "mean_logits",
        description="what is averaged: logits (FedDF) or probabilities (FedBE, FedED); auto: in every round, whichever "
        "is better on validation examples, or by agreement on public inputs, of teachers as they are or equally loud",
    )

    @property
    def counts_examples(self) -> bool:
        return any(member.counts_examples for member in self.teachers)

    @property
    def compares_widths(self) -> bool:
        return any(member.compares_widths for member in self.teachers)

    def check(self, context: CheckContext) -> None:
        if context.inputs is None and any(member.reestimates for member in self.teachers):
            raise ConfigError(
                "method.fuse.teachers re-estimate BatchNorm statistics on public inputs, but this method has none; set "
                "their batch_norm to average"
            )

        if self.target == "auto" and context.inputs is None and not context.has_validation:
            raise ConfigError(
                "method.fuse.target auto compares ensembles on validation examples or public inputs, and there are "
                "neither; set data.validation, or the target to mean_probabilities"
            )

    def number_of_teachers(self, clients: Mapping[str, float]) -> dict[str, float]:
        """How many teachers of each prototype there are, of so many clients."""
        return {p: sum(kind.count(number) for kind in self.teachers) for p, number in clients.items() if number}

    def ensemble(
        self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]
    ) -> Callable[[Tensor], Tensor] | None:
        """Unless clients scored their own answers, and so have nothing to say about other inputs."""
        if view.scores.asks_clients:
            return None
        return self._ensemble(view, merged, teachers).log_probabilities

    def _ensemble(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> Ensemble:
        coefficients = dict(zip((u.client for u in teachers), view.scores.of_models(view, teachers), strict=True))
        reestimated = None if view.source is None else view.reestimated
        models = RoundModels(teachers, merged, view.weights, view.key.child("teachers"), coefficients, reestimated)
        gathered = [teacher for kind in self.teachers for teacher in kind.gather(models)]
        weigh = view.scores.weigh if isinstance(view.scores, ByOutputs) else None
        together = view.scores.together if isinstance(view.scores, ByComparison) else None
        if self.target == "auto":
            return chosen(view, Ensemble(view.bank, gathered, self.usual_target, weigh, together))
        return Ensemble(view.bank, gathered, self.target, weigh, together)


class EnsembleOnly(EnsembleFuse):
    """Leave the merged weights as they are, and report how good the ensemble would be."""

    kind: Literal["ensemble_only"] = "ensemble_only"
    needs_source: ClassVar[bool] = False
    makes_students: ClassVar[bool] = False
    usual_target: ClassVar[Target] = "mean_probabilities"
    target: Target | Literal["auto"] = Field(
        "mean_probabilities", description="what is averaged: logits or probabilities; auto: whichever is better"
    )

    def fuse(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> Fused:
        why = self._ensemble(view, merged, teachers).why if self.target == "auto" else ""
        return Fused(merged, ensemble=why)
