"""w1 of FedED: w_k^c = N_k^c / (sum_i N_i^c + 0.001); rows need not sum to one, as in the thesis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from fedfuse.core.messages import Tensors
from fedfuse.parts.base import Shapes
from fedfuse.parts.claims import counts_within
from fedfuse.parts.context import ClientContext
from fedfuse.parts.scores.base import Said, Scores
from fedfuse.parts.tensor_spec import MOST_EXAMPLES, TensorSpec
from fedfuse.runtime.source import Source

COUNTS = "label_counts"


class ByLabels(Scores):
    """An answer for a class counts by how many examples of it the client has (4 K bytes up, once)."""

    kind: Literal["labels"] = "labels"
    needs_source: ClassVar[bool] = True

    def say(self, learnt: Tensors, client: ClientContext, source: Source) -> Tensors:
        return {COUNTS: client.examples.label_counts(client.bank.classes)}

    def spec(self, inputs: int, classes: int) -> Shapes:
        return {COUNTS: TensorSpec((classes,), least=0, most=MOST_EXAMPLES)}

    def sensitivity(self) -> float:
        """One example is one of its label."""
        return 1.0

    def in_range(self, extras: Tensors) -> Tensors:
        return {name: counts.clamp_min(0) for name, counts in extras.items()}

    def within_bounds(self, said: Sequence[Tensors], examples: Sequence[int]) -> list[Tensors]:
        return counts_within(said, COUNTS, examples)

    def weights(self, said: Sequence[Said]) -> list[Tensor]:
        counts = torch.stack([one.update.extras[COUNTS] for one in said])
        return list(counts / (counts.sum(dim=0) + 0.001))
