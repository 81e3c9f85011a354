"""Inputs that the server makes from the round's teachers, where nobody has any: data-free distillation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import Field

from fedfuse.models.operations import BACKWARD
from fedfuse.parts.sources.base import SourceSettings, Surroundings, refuse_texts
from fedfuse.parts.sources.synthesised.settings import SynthesisSettings
from fedfuse.parts.sources.synthesised.training import Wanted
from fedfuse.runtime.source import Source


class Synthesised(SourceSettings, SynthesisSettings):
    """Inputs of generators that are trained against the teachers (DENSE), and where wanted as Co-Boosting does it."""

    kind: Literal["synthesised"] = "synthesised"
    renewal: float = Field(
        0.25, gt=0, le=1, description="share of the inputs that each round after the first makes anew, the oldest first"
    )

    @property
    def needs_teachers(self) -> bool:
        return True

    def kept(self, there: int) -> int:
        """How many inputs of earlier rounds stay, the youngest of those that are there."""
        return min(there, self.size - math.ceil(self.renewal * self.size))

    def passes(self, rounds: int) -> float:
        """Forward passes through each teacher's network in a round, in the mean; a step counts as three."""
        made = self.size * (1 + (rounds - 1) * self.renewal) / rounds
        return BACKWARD * self.steps * made

    def open(self, surroundings: Surroundings) -> Source:
        """Noise in the place of inputs that are to be made."""
        refuse_texts(self.kind, surroundings)
        images, random = surroundings.clients.kind == "images", surroundings.key.torch()
        shape = (self.size, *surroundings.shape)
        if images:
            raw = torch.randint(0, 256, shape, dtype=torch.uint8, generator=random)
        else:
            raw = torch.randn(shape, generator=random)
        wanted = Wanted(surroundings.shape, images, surroundings.classes, surroundings.transform.normalisation)
        return SynthesisedSource(
            self.kind, raw, surroundings.transform, surroundings.compute, settings=self, wanted=wanted
        )


@dataclass(frozen=True, kw_only=True)
class SynthesisedSource(Source):
    """Noise until teachers are there, in a round; then a fusion has inputs made by these settings."""

    settings: Synthesised
    wanted: Wanted
