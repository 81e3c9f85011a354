"""Full weights both ways, as FedAvg: 4 (P + B) bytes each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor

from fedfuse.core.messages import Update
from fedfuse.core.randomness import Key
from fedfuse.parts.context import ServerView
from fedfuse.parts.protocol.base import Answer, Exchange, Trained
from fedfuse.parts.protocol.testimony import ScoredExchange, keep
from fedfuse.parts.scores import AnyTestimony, ByCertainty
from fedfuse.runtime.source import Source


class FullWeights(Exchange):
    """Clients receive the prototype's weights and send their own."""

    kind: Literal["weights"] = "weights"

    def answer(self, trained: Trained) -> Answer:
        return Answer(trained.weights)


class ScoredWeights(ScoredExchange):
    """Full weights both ways, and once what the client's answers are worth on each public input (FedAUX)."""

    kind: Literal["scored_weights"] = "scored_weights"
    brings_testimony: ClassVar[bool] = True
    weighting: AnyTestimony = Field(
        default_factory=ByCertainty, description="how much each client counts as a teacher, input by input"
    )

    def answer(self, trained: Trained) -> Answer:
        learnt = self.learnt(trained)
        return Answer(trained.weights, self.testimony(learnt, trained), keep(learnt))

    def public(self, source: Source, common: Key, number: int) -> Source:
        return self.weighting.scored(source, common)

    def shares(self, view: ServerView, updates: Sequence[Update]) -> Sequence[Tensor]:
        return self.weighting.weights(updates)


class Pooled(Exchange):
    """One party holds everybody's examples: the centralised bound. Nothing travels, and nothing is private."""

    kind: Literal["pooled"] = "pooled"
    pools_data: ClassVar[bool] = True

    def answer(self, trained: Trained) -> Answer:
        return Answer(trained.weights)
