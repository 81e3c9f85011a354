"""The median of what teachers say, class by class: of each number for each input only the middle one counts.

    z_j^c = median of z_1^c(x_j) .. z_m^c(x_j)

Of an even number the two in the middle count half each. While fewer than half of the teachers are hostile, every number
lies between two honest ones (Yin et al., ICML 2018, for predictions instead of weights).
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from fedfuse.parts.scores.comparing import ByComparison


class ByMedian(ByComparison):
    """Of each number that teachers say, the middle one is heard."""

    kind: Literal["median"] = "median"

    def of_answers(self, answers: Tensor) -> Tensor:
        return of_the_middle(answers, (len(answers) - 1) // 2)


def of_the_middle(answers: Tensor, left_out: int) -> Tensor:
    """Equal weights, for each number, of all teachers but those that say the smallest and the largest ones."""
    order = answers.argsort(dim=0, stable=True)
    kept = order[left_out : len(answers) - left_out]
    return torch.zeros_like(answers).scatter(0, kept, 1 / len(kept))
