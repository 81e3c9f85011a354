"""How good clients' own models were when each was measured last: the result of methods without a model on the server.

A round asks only those who take part in it, and their mean would jump with who they are; so the server remembers
everybody's latest accuracy and loss, and the metrics that are one number each: a row for each client, NaN for those who
were never asked and for what has no value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from fedfuse.runtime.evaluate import Score

NONE = torch.empty(0, 2, dtype=torch.float64)
"""Nobody was ever asked."""


def updated(client_scores: Tensor, scores: Mapping[int, Score], clients: int, metrics: Sequence[str] = ()) -> Tensor:
    """The rows of all clients after a round in which some were asked."""
    if not scores:
        return client_scores
    unasked = torch.full((clients, 2 + len(metrics)), torch.nan, dtype=torch.float64)
    rows = client_scores.clone() if len(client_scores) else unasked
    for client, score in scores.items():
        named = [score.metrics.get(name) for name in metrics]
        values = [score.accuracy, score.loss, *(torch.nan if value is None else value for value in named)]
        rows[client] = torch.tensor(values, dtype=torch.float64)
    return rows


def by_prototype(client_scores: Tensor, prototypes: Sequence[str]) -> dict[str, Tensor]:
    """The rows of those who were ever asked, by the prototype that they run."""
    rows: dict[str, list[Tensor]] = {}
    for row, prototype in zip(client_scores, prototypes if len(client_scores) else (), strict=True):
        if not bool(row[0].isnan()):
            rows.setdefault(prototype, []).append(row)
    return {prototype: torch.stack(own) for prototype, own in rows.items()}
