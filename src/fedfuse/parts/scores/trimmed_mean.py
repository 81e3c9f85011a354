"""The trimmed mean of what teachers say, class by class: the f smallest and f largest numbers are not heard.

    z_j^c = mean of z_1^c(x_j) .. z_m^c(x_j) without the f smallest and the f largest,   f = floor(hostile m)

(Yin et al., ICML 2018, for predictions instead of weights.) Of fewer than 2 f + 1 teachers, f is the largest possible.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import Tensor

from fedfuse.parts.robust import HOSTILE, Hostile, bearable
from fedfuse.parts.scores.comparing import ByComparison
from fedfuse.parts.scores.median import of_the_middle


class ByTrimmedMean(ByComparison):
    """Of each number that teachers say, the extremes are not heard."""

    kind: Literal["trimmed_mean"] = "trimmed_mean"
    hostile: Hostile = Field(0.2, description=f"{HOSTILE}; as many are left out at both ends")

    def of_answers(self, answers: Tensor) -> Tensor:
        return of_the_middle(answers, bearable(self.hostile, len(answers), lambda hostile: 2 * hostile + 1))
