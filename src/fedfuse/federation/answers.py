"""What a round's clients say about the public inputs, beside the others (``federation.claims`` and ``moves``).

A client counts for nothing whose first choices are those of the weighted vote of all (``scores: reliability``) no more
often than a guess would be, class by class, and far less often than the others' (its lower fence, core/fences.py).
Where many honest clients know one class only, they are no better than that, the fence is below all of them, and nobody
is judged; nor with fewer than four others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from fedfuse.core.fences import FEW, lower_fences
from fedfuse.core.messages import Update, of_part
from fedfuse.core.slices import spread
from fedfuse.federation.recipe import PROTOCOL
from fedfuse.parts.protocol.base import PREDICTIONS
from fedfuse.parts.scores.reliability import MOST_ASKED, of_choices

LEAST_SPREAD = 0.1
"""Reliabilities that differ by less are alike."""
GUESSING = 0.1
"""Of 1 that always says what the vote says; a guess has about 0."""
Choices = Mapping[int, Tensor]
"""By client, the class that it takes each input for."""


def unlike_the_others(said: Choices, classes: int) -> dict[int, str]:
    """Who is not heard, and why."""
    if len(said) <= FEW:
        return {}
    found = of_choices(torch.stack(list(said.values())).long(), classes).tolist()
    fences, quartiles = lower_fences(found, LEAST_SPREAD)
    return {
        client: f"says what the others say as seldom as a guess: {own:.2f} of 1, most of them above {others:.2f}"
        for client, own, fence, others in zip(said, found, fences, quartiles, strict=True)
        if own < min(GUESSING, fence)
    }


def unlike_in_predictions(updates: Sequence[Update]) -> dict[int, str]:
    """The same of clients that send what they think, if all of them do."""
    tables = {update.client: of_part(PROTOCOL, update.extras).get(PREDICTIONS) for update in updates}
    said = {client: table for client, table in tables.items() if table is not None}
    if not said or len(said) < len(tables):
        return {}
    inputs, classes = next(iter(said.values())).shape
    rows = torch.tensor(spread(inputs, MOST_ASKED))
    return unlike_the_others({client: table[rows].argmax(dim=1).cpu() for client, table in said.items()}, classes)
