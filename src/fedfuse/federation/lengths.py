"""How far clients moved, beside the others: what the length of each counts as (core/fences.py).

Clients of one prototype are compared by their lengths. Where it has few, and there are other prototypes, each client's
length is divided by the median of its companions', and those quotients are compared across all prototypes: networks of
other shapes move as far as they move, but of none a client goes twenty times as far as the others do. Both lengths of a
quotient vary, so that it may be four times the others', where a length may be twice.

In a round of few clients, others of their prototype who are not in it count as they did when they were heard last.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from fedfuse.core.fences import FEW, SLACK, counted, medians_of_others
from fedfuse.core.messages import Tensors
from fedfuse.federation.directions import COMPANY, MOST_KNOWN

Lengths = Mapping[int, float]
"""By client."""
LAST = "lengths"


@dataclass(frozen=True)
class LastLengths:
    """What the lengths of one prototype's clients counted as, in the order in which they were heard last."""

    known: Lengths = field(default_factory=dict)

    @staticmethod
    def of(memory: Tensors) -> LastLengths:
        return LastLengths({int(client): float(length) for client, length in memory.get(LAST, torch.empty(0, 2))})

    @property
    def memory(self) -> Tensors:
        return {LAST: torch.tensor(list(self.known.items()), dtype=torch.float64)} if self.known else {}

    def absent(self, clients: Lengths) -> Lengths:
        """Those of others who are not among these clients of a round, if they are few."""
        if len(clients) > FEW:
            return {}
        others = {client: length for client, length in self.known.items() if client not in clients}
        return dict(list(others.items())[-COMPANY:])

    def after(self, lengths: Lengths, counted: Lengths) -> LastLengths:
        """One more round, and what lengths counted as that were too long."""
        known = {client: length for client, length in self.known.items() if client not in lengths}
        known |= {client: counted.get(client, length) for client, length in lengths.items()}
        return LastLengths(dict(list(known.items())[-MOST_KNOWN:]))


NOBODY = LastLengths()


def beyond(lengths: Mapping[str, Lengths], last: Mapping[str, LastLengths] | None = None) -> dict[int, float]:
    """What the lengths of those count as that are beyond their fences; given by prototype."""
    found: dict[int, float] = {}
    quotients, companions = _quotients(lengths)
    beside_all = _shortened(quotients, slack=SLACK**2)
    for prototype, own in lengths.items():
        absent = (last or {}).get(prototype, NOBODY).absent(own)
        if len(own) + len(absent) > FEW:
            beside_them = _shortened({**absent, **own})
            found |= {client: size for client, size in beside_them.items() if client in own}
        elif len(lengths) == 1:
            found |= _shortened(own)
        else:
            found |= {client: size * companions[client] for client, size in beside_all.items() if client in own}
    return found


def _quotients(lengths: Mapping[str, Lengths]) -> tuple[dict[int, float], dict[int, float]]:
    """Of clients that have companions, each one's length by the median of theirs, and that median."""
    medians = {
        client: middle
        for own in lengths.values()
        for client, middle in zip(own, medians_of_others(list(own.values())), strict=True)
        if math.isfinite(middle)
    }
    own = {client: length for group in lengths.values() for client, length in group.items()}
    return {client: own[client] / middle for client, middle in medians.items()}, medians


def _shortened(sizes: Lengths, slack: float = SLACK) -> dict[int, float]:
    """What those count as that count as less than they are."""
    all_sizes = zip(sizes, counted(list(sizes.values()), slack), strict=True)
    return {client: size for client, size in all_sizes if size < sizes[client]}
