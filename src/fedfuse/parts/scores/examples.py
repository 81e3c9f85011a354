"""w0 of FedED: w_k = N_k / sum_i N_i."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from fedfuse.core.messages import Update
from fedfuse.parts.context import ServerView
from fedfuse.parts.scores.base import Coefficient, Said, Scores


class ByExamples(Scores):
    """Every teacher counts by the client's data size, which is part of every message."""

    kind: Literal["examples"] = "examples"

    @property
    def counts_examples(self) -> bool:
        return True

    def weights(self, said: Sequence[Said]) -> list[Tensor]:
        total = sum(one.update.examples for one in said)
        return [torch.tensor(one.update.examples / total) for one in said]

    def of_models(self, view: ServerView, updates: Sequence[Update]) -> list[Coefficient]:
        return [float(update.examples) for update in updates]
