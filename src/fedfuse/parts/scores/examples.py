"""w0 of FedED: w_k = N_k / sum_i N_i."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from fedfuse.core.messages import Update
from fedfuse.parts.scores.base import Weighting


class ByExamples(Weighting):
    """Every answer counts by the client's data size, which is part of every message."""

    kind: Literal["examples"] = "examples"

    def weights(self, updates: Sequence[Update]) -> list[Tensor]:
        total = sum(update.examples for update in updates)
        return [torch.tensor(update.examples / total) for update in updates]


class Uniform(Weighting):
    """Every answer counts the same: w_k = 1 / m."""

    kind: Literal["uniform"] = "uniform"

    def weights(self, updates: Sequence[Update]) -> list[Tensor]:
        return [torch.tensor(1 / len(updates)) for _ in updates]
