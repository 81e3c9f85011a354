"""w1 of FedED: w_k^c = N_k^c / (sum_i N_i^c + 0.001); rows need not sum to one, as in the thesis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from fedfuse.core.messages import Tensors, Update
from fedfuse.parts.protocol.base import Party, Shapes
from fedfuse.parts.scores.base import Weighting
from fedfuse.runtime.source import Source

COUNTS = "label_counts"


class ByLabels(Weighting):
    """An answer for a class counts by how many examples of it the client has (4 K bytes up, once)."""

    kind: Literal["labels"] = "labels"

    def testify(self, learnt: Tensors, party: Party, source: Source) -> Tensors:
        return {COUNTS: party.examples.label_counts(party.bank.classes)}

    def update_spec(self, inputs: int, classes: int) -> Shapes:
        return {COUNTS: (classes,)}

    def weights(self, updates: Sequence[Update]) -> list[Tensor]:
        counts = torch.stack([update.extras[COUNTS] for update in updates])
        return list(counts / (counts.sum(dim=0) + 0.001))
