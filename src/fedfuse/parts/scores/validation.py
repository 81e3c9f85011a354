"""Each client's accuracy on the server's validation split over the sum of all.

It is the "weighted teaching" of FedDF's released code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Update
from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ServerView
from fedfuse.parts.scores.base import Coefficient, Said, Scores


class ByValidation(Scores):
    """A model counts by its accuracy on the server's validation examples."""

    kind: Literal["validation"] = "validation"
    for_predictions: ClassVar[bool] = False

    def check(self, context: CheckContext) -> None:
        if not context.has_validation:
            raise ConfigError("method.scores validation judges teachers on validation examples; set data.validation")

    def weights(self, said: Sequence[Said]) -> list[Tensor]:
        raise NotImplementedError("there is no model to judge behind predictions")

    def of_models(self, view: ServerView, updates: Sequence[Update]) -> list[Coefficient]:
        weights: list[Coefficient] = [view.score(update.prototype, update.weights).accuracy for update in updates]
        return weights if any(weights) else [1.0 for _ in updates]  # all at zero: nothing to choose by
