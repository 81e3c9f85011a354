"""The base of scores that weigh what a teacher says beside what the others say, input by input."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from fedfuse.core.messages import Update
from fedfuse.parts.context import ServerView
from fedfuse.parts.scores.base import Coefficient, Said, Scores


class ByComparison(Scores):
    """A teacher counts by its place among all of them. They must be heard together, whatever they are asked about."""

    @abstractmethod
    def of_answers(self, answers: Tensor) -> Tensor:
        """How much of each answer counts, of teachers x inputs x classes: as many numbers, or one for all classes.

        Those of all teachers sum to one, for each input and class.
        """

    def weights(self, said: Sequence[Said]) -> list[Tensor]:
        return list(self.together(torch.stack([one.outputs for one in said])).float())

    def of_models(self, view: ServerView, updates: Sequence[Update]) -> list[Coefficient]:
        return [1.0 for _ in updates]

    def together(self, answers: Tensor) -> Tensor:
        """The same, of answers of any type, without a gradient."""
        return self.of_answers(answers.detach().double())
