"""What robust screens and merges have in common: how many clients may be hostile, and how far updates are apart.

They compare the clients of one prototype in one round. Of n of them f are taken to be hostile: a number, or a share of
n, rounded down. A rule that needs more clients for its f than a round can have is refused before round 1; in a round
that has fewer than usual, f is the largest that the rule still bears, and the log says so (``defence_weakened``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Update
from fedfuse.core.weights import Weights
from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ServerView

Hostile = Annotated[int, Field(ge=0)] | Annotated[float, Field(gt=0, lt=0.5)]
"""How many of a round's clients may be hostile: a number, or a share of them."""
HOSTILE = "how many of a round's clients may be hostile: a share below one half, or a number"
Needs = Callable[[int], int]
"""How many clients a rule needs to bear so many hostile ones."""

MOST_COMPARED = 2000
"""Clients of one prototype in a round of which every two are compared: n^2 distances, each of the whole model."""
AT_ONCE = 1 << 22
"""Numbers of all clients together that are looked at at a time."""


def hostile_among(hostile: int | float, clients: int) -> int:
    """f: a share of the clients, rounded down, or the number itself."""
    return hostile if isinstance(hostile, int) else int(hostile * clients + 1e-9)


def bearable(hostile: int | float, clients: int, needs: Needs) -> int:
    """The largest f up to ``hostile`` that a rule bears with so many clients; negative if it bears not even none."""
    return next((f for f in range(hostile_among(hostile, clients), -1, -1) if clients >= needs(f)), -1)


def borne(view: ServerView, where: str, hostile: int | float, clients: int, needs: Needs) -> int:
    """The same, of a round; the log hears of it where it is fewer than was asked for."""
    wanted, most = hostile_among(hostile, clients), bearable(hostile, clients, needs)
    if most < wanted:
        view.weakened(
            f"{where} bears {max(most, 0)} hostile clients in this round instead of {wanted}: {clients} clients of one "
            f"model were heard, it needs {needs(wanted)}"
        )
    return most


def check_enough(context: CheckContext, where: str, hostile: int | float, needs: Needs) -> None:
    """Refuse an f that no round can bear."""
    for prototype, most in context.most_in_a_round.items():
        wanted = hostile_among(hostile, most)
        if wanted and most < needs(wanted):
            possible = max(bearable(hostile, most, needs), 0)
            raise ConfigError(
                f"{where} with hostile {hostile} takes {wanted} of a round's {most} clients of model '{prototype}' for "
                f"hostile and needs {needs(wanted)} clients for that; set hostile to {possible}, or let more take part"
            )


def check_pairs(context: CheckContext, where: str) -> None:
    """Refuse rounds in which all pairs of clients would be too many."""
    for prototype, most in context.most_in_a_round.items():
        if most > MOST_COMPARED:
            raise ConfigError(
                f"{where} compares every two of a round's clients, and {most:,} of model '{prototype}' are too many "
                f"(at most {MOST_COMPARED:,}); set federation.clients_per_round, or use merge trimmed_mean or median"
            )


def by_prototype(updates: Sequence[Update]) -> dict[str, list[Update]]:
    """The updates of each prototype, in client order."""
    groups: dict[str, list[Update]] = {}
    for update in updates:
        groups.setdefault(update.prototype, []).append(update)
    return groups


def rows(weights: Sequence[Weights], end: int, begin: int = 0) -> Iterator[Tensor]:
    """The flat vectors piece by piece, a row for each of the weights, in double precision."""
    length = max(1, AT_ONCE // len(weights))
    for first in range(begin, end, length):
        last = min(first + length, end)
        yield torch.stack([one.between(first, last) for one in weights]).double()


def squared_distances(weights: Sequence[Weights], base: Weights) -> Tensor:
    """Between the parameters of every two of the weights, which have moved from the base."""
    count = base.layout.parameter_count
    products = torch.zeros(len(weights), len(weights), dtype=torch.float64)
    for moves in rows([*weights, base], count):
        apart = moves[:-1] - moves[-1]
        products += apart @ apart.T
    own = products.diagonal()
    distances = (own.unsqueeze(0) + own.unsqueeze(1) - products - products.T).clamp_min(0)  # the same both ways
    return distances.fill_diagonal_(0)


def length_of_move(update: Update, view: ServerView) -> float:
    """How far a client moved the parameters that it was sent."""
    sent, brought = view.weights[update.prototype], update.weights.here
    return float(torch.linalg.vector_norm(brought.parameters - sent.parameters))
