"""Model soups (Wortsman et al., Model soups: averaging weights of multiple fine-tuned models improves accuracy without
increasing inference time, ICML 2022).

uniform: the average of all models. greedy: models by falling accuracy on validation examples; the first is in the soup,
and each of the others goes in if the average with it is at least as good as the soup before. Of models of equal
accuracy the one with the smaller loss comes first, then the one that came first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.core.weights import Weights, mean
from fedfuse.parts.base import CheckContext
from fedfuse.parts.merge.piecewise import PiecewiseMerge, Stack, Survey
from fedfuse.parts.merge.trained import TrainedModels, UniformMerge


class Soup(UniformMerge, PiecewiseMerge):
    """The average of all models, or of those that make it no worse."""

    kind: Literal["soup"] = "soup"
    form: Literal["greedy", "uniform"] = Field("greedy", description="greedy: chosen on validation examples; uniform")

    def check(self, context: CheckContext) -> None:
        if self.form == "greedy" and not context.has_validation:
            raise ConfigError(
                "method.merge soup tastes every average on validation examples; set data.validation, or form: uniform"
            )

    @property
    def counts_from_base(self) -> bool:
        return False

    def piece(self, stack: Stack, shares: Sequence[float], survey: Survey) -> Tensor:
        average = torch.zeros_like(stack.models[0])
        for model, share in zip(stack.models, shares, strict=True):
            average.add_(model, alpha=share)
        return average

    def combine(self, trained: TrainedModels) -> Weights:
        return trained.mean() if self.form == "uniform" else _average(trained, self.ingredients(trained))

    def ingredients(self, trained: TrainedModels) -> list[int]:
        """The places of the models in a greedy soup, in the order in which they went in."""
        scores = [trained.score(model) for model in trained.models]
        best, *others = sorted(range(len(scores)), key=lambda place: (-scores[place].accuracy, scores[place].loss))
        chosen, accuracy = [best], scores[best].accuracy
        for place in others:
            tasted = trained.score(_average(trained, [*chosen, place])).accuracy
            if tasted >= accuracy:
                chosen, accuracy = [*chosen, place], tasted
        return chosen


def _average(trained: TrainedModels, places: Sequence[int]) -> Weights:
    """Of some models, in their own order, so that it does not depend on when each went in."""
    ordered = sorted(places)
    return mean([trained.models[place] for place in ordered], [trained.shares[place] for place in ordered])
