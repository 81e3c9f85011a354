"""How good clients' own models were when each was measured last: the result of methods without a model on the server.

A round asks only those who take part in it, and their mean would jump with who they are; so the server remembers
everybody's latest accuracy and loss, a row for each client, NaN for those who were never asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from fedfuse.runtime.evaluate import Score

NONE = torch.empty(0, 2, dtype=torch.float64)
"""Nobody was ever asked."""


def updated(client_scores: Tensor, scores: Mapping[int, Score], clients: int) -> Tensor:
    """The rows of all clients after a round in which some were asked."""
    if not scores:
        return client_scores
    rows = client_scores.clone() if len(client_scores) else torch.full((clients, 2), torch.nan, dtype=torch.float64)
    for client, score in scores.items():
        rows[client] = torch.tensor([score.accuracy, score.loss], dtype=torch.float64)
    return rows


def by_prototype(client_scores: Tensor, prototypes: Sequence[str]) -> dict[str, Tensor]:
    """The rows of those who were ever asked, by the prototype that they run."""
    rows: dict[str, list[Tensor]] = {}
    for row, prototype in zip(client_scores, prototypes if len(client_scores) else (), strict=True):
        if not bool(row[0].isnan()):
            rows.setdefault(prototype, []).append(row)
    return {prototype: torch.stack(own) for prototype, own in rows.items()}
