"""What a round's clients say about the public inputs, beside the others (``federation.claims``).

A client counts for nothing whose first choices are those of the weighted vote of all (``scores: reliability``) no more
often than a guess would be, class by class, and far less often than the others' (its lower fence, core/fences.py).
Where many honest clients know one class only, they are no better than that, the fence is below all of them, and nobody
is judged; nor with fewer than four others.
"""

from __future__ import annotations

from collections.abc import Sequence

from fedfuse.core.fences import FEW, lower_fences
from fedfuse.core.messages import Update, of_part
from fedfuse.federation.recipe import PROTOCOL
from fedfuse.parts.protocol.base import PREDICTIONS
from fedfuse.parts.scores.reliability import reliabilities

LEAST_SPREAD = 0.1
"""Reliabilities that differ by less are alike."""
GUESSING = 0.1
"""Of 1 that always says what the vote says; a guess has about 0."""


def unlike_the_others(updates: Sequence[Update]) -> dict[int, str]:
    """Who is not heard, and why."""
    tables = [of_part(PROTOCOL, update.extras).get(PREDICTIONS) for update in updates]
    said = [table for table in tables if table is not None]
    if len(said) < len(updates) or len(said) <= FEW:
        return {}
    found = reliabilities(said).tolist()
    fences, quartiles = lower_fences(found, LEAST_SPREAD)
    return {
        update.client: f"says what the others say as seldom as a guess: {own:.2f} of 1, most of them above {others:.2f}"
        for update, own, fence, others in zip(updates, found, fences, quartiles, strict=True)
        if own < min(GUESSING, fence)
    }
