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
from fedfuse.parts.fuse.base import Fuse, Fused
from fedfuse.parts.fuse.members import AnyTeacher, ClientTeachers, RoundModels
from fedfuse.parts.fuse.teachers import Ensemble, Target
from fedfuse.parts.fuse.weighting import TeacherWeighting, client_weights


class EnsembleFuse(Fuse):
    """The base of fusions that ask an ensemble."""

    teachers: tuple[AnyTeacher, ...] = Field((ClientTeachers(),), min_length=1, description="who is in the ensemble")
    target: Target = "mean_logits"
    weighting: TeacherWeighting = Field(
        "uniform",
        description="weights of the clients as teachers: uniform; examples: by data size (FedED w0); validation: by "
        "accuracy on the validation split (FedDF's code); testimony: input by input, by what clients said of "
        "themselves (FedAUX; needs exchange scored_weights). Other members weigh as the mean of their clients",
    )

    @property
    def reads_testimony(self) -> bool:
        return self.weighting == "testimony"

    @property
    def compares_widths(self) -> bool:
        return any(member.compares_widths for member in self.teachers)

    def check(self, context: CheckContext) -> None:
        if self.weighting == "validation" and not context.has_validation:
            raise ConfigError(
                "method.fuse.weighting validation judges teachers on validation examples; set data.validation"
            )
        if context.inputs is None and any(member.reestimates for member in self.teachers):
            raise ConfigError(
                "method.fuse.teachers re-estimate BatchNorm statistics on public inputs, but this method has none; set "
                "their batch_norm to average"
            )

    def ensemble(
        self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]
    ) -> Callable[[Tensor], Tensor] | None:
        """Unless it is weighted input by input, and so has nothing to say about other inputs."""
        return None if self.weighting == "testimony" else self._ensemble(view, merged, teachers).log_probabilities

    def _ensemble(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> Ensemble:
        trust = client_weights(self.weighting, view, teachers)
        reestimated = None if view.source is None else view.reestimated
        models = RoundModels(teachers, merged, view.weights, view.key.child("teachers"), trust, reestimated)
        return Ensemble(view.bank, [teacher for kind in self.teachers for teacher in kind.gather(models)], self.target)


class EnsembleOnly(EnsembleFuse):
    """Leave the merged weights as they are, and report how good the ensemble would be."""

    kind: Literal["ensemble_only"] = "ensemble_only"
    needs_source: ClassVar[bool] = False
    makes_students: ClassVar[bool] = False
    target: Target = "mean_probabilities"

    def fuse(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> Fused:
        return Fused(merged)
