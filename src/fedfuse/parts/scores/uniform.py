"""w_k = 1 / m, as FedDF and FedBE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from fedfuse.core.messages import Update
from fedfuse.parts.context import ServerView
from fedfuse.parts.scores.base import Coefficient, Said, Scores


class Uniform(Scores):
    """Every teacher counts the same."""

    kind: Literal["uniform"] = "uniform"

    def weights(self, said: Sequence[Said]) -> list[Tensor]:
        return [torch.tensor(1 / len(said)) for _ in said]

    def of_models(self, view: ServerView, updates: Sequence[Update]) -> list[Coefficient]:
        return [1.0 for _ in updates]
