"""How good clients' own models were when each was measured last: the result of methods without a model on the server.

A round asks only those who take part in it, and their mean would jump with who they are; so the server remembers
everybody's latest accuracy and loss, and the metrics that are one number each: a row for each client that was ever
asked, in the clients' order, which begins with the client's number. What has no value is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from fedfuse.core.messages import Tensors
from fedfuse.federation.prototypes import Prototypes
from fedfuse.runtime.evaluate import Score

NONE = torch.empty(0, 3, dtype=torch.float64)
"""Nobody was ever asked."""
LATEST_SCORES, SCORES_OF_ALL = "latest_scores", "client_scores"
"""What the server itself remembers them as, and did in older runs."""


def remembered(memory: Tensors) -> Tensor:
    """The rows that the server itself remembers."""
    return of_older_runs(memory[SCORES_OF_ALL]) if SCORES_OF_ALL in memory else memory.get(LATEST_SCORES, NONE)


def updated(client_scores: Tensor, scores: Mapping[int, Score], metrics: Sequence[str] = ()) -> Tensor:
    """The rows after a round in which some clients were asked."""
    if not scores:
        return client_scores
    new = torch.tensor([_row(client, scores[client], metrics) for client in scores], dtype=torch.float64)
    kept = client_scores[~torch.isin(client_scores[:, 0], new[:, 0])]
    rows = torch.cat([kept, new]) if len(kept) else new
    return rows[rows[:, 0].argsort()]


def _row(client: int, score: Score, metrics: Sequence[str]) -> list[float]:
    named = [score.metrics.get(name) for name in metrics]
    return [client, score.accuracy, score.loss, *(torch.nan if value is None else value for value in named)]


def by_prototype(client_scores: Tensor, prototypes: Prototypes) -> dict[str, Tensor]:
    """Accuracies, losses and metrics of those who were ever asked, by the prototype that they run."""
    names = prototypes.of(client_scores[:, 0].numpy())
    rows = {name: client_scores[torch.from_numpy(names == name)] for name in dict.fromkeys(names.tolist())}
    return {name: own[:, 1:].contiguous() for name, own in rows.items()}


def of_older_runs(everybody: Tensor) -> Tensor:
    """The rows of a checkpoint that had one for every client, asked or not, and no numbers."""
    asked = (~everybody[:, 0].isnan()).nonzero()
    return torch.cat([asked.double(), everybody[asked[:, 0]]], dim=1)
