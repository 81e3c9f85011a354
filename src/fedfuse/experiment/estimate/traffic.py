"""How many bytes will travel: what a task and an update of each model weigh, times who is drawn how often.

A miniature is played until a round weighs what the one before did. Bytes are those of tensors, whose sizes depend on
networks and parts and on how many public inputs there are, and on nothing else that is small in it: so two miniatures
with different numbers of inputs tell what any number of them weighs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from fedfuse.experiment.assembly import Built
from fedfuse.experiment.estimate.miniature import LATE, Ledger, Miniature, Size
from fedfuse.federation import Federation

MOST_ROUNDS = 12
CLIENTS = 3
"""Of each model: two from the beginning, since some parts compare clients with each other, and one that comes late."""
FEW_INPUTS = (40, 80)
"""Public inputs of the two miniatures: whole bytes, in however few bits predictions travel."""


@dataclass(frozen=True)
class Traffic:
    """Bytes of all rounds; ``is_exact`` if every round is known to weigh that."""

    up: int
    down: int
    is_exact: bool


@dataclass(frozen=True)
class Weight:
    """Of one client's part in a round, both ways."""

    down: float
    up: float

    def plus(self, other: Weight, share: float = 1.0) -> Weight:
        return Weight(self.down + share * other.down, self.up + share * other.up)

    def minus(self, other: Weight) -> Weight:
        return self.plus(other, -1.0)

    @property
    def whole(self) -> Weight:
        """Bits are filled up to bytes."""
        return Weight(math.ceil(round(self.down, 6)), math.ceil(round(self.up, 6)))


Weigh = Callable[[int, str, bool], Weight]
"""The round, the prototype, and whether it is the client's first visit."""


def traffic(built: Built) -> Traffic:
    """What the rounds of an experiment weigh together."""
    if not built.federation.has_wire:
        return Traffic(0, 0, True)
    tables = [_table(built, inputs) for inputs in FEW_INPUTS[: 1 if built.source is None else 2]]
    weigh: Weigh = tables[0]
    if len(tables) > 1:
        weigh = partial(_between, tables[0], tables[1], inputs_of_a_round(built))
    up = down = 0
    for number, prototype, is_first in visits(built.federation):
        one = weigh(number, prototype, is_first).whole
        up, down = up + int(one.up), down + int(one.down)
    return Traffic(up, down, all(table.is_steady for table in tables) and _is_like_its_miniature(built))


def _is_like_its_miniature(built: Built) -> bool:
    """Whether nothing travels whose size depends on what was small in it, or on who happens to be there."""
    config, clients = built.config, built.federation.prototypes.clients_of
    some_are_late = built.federation.wanted < built.federation.clients
    return (
        config.federation.clock is None
        and config.recipe.protocol.carries != "layer"
        and not config.recipe.scores.asks_clients
        and not (some_are_late and min(clients.values()) < CLIENTS)
    )


def inputs_of_a_round(built: Built) -> int:
    """How many public inputs a round is about."""
    if built.source is None:
        return 0
    given = getattr(built.config.recipe.protocol, "inputs", None)
    return min(len(built.source), given or len(built.source))


@dataclass(frozen=True)
class _Table:
    """What a miniature's clients weighed, by round, and what a first visit weighs more than another."""

    by_round: dict[tuple[int, str], Weight]
    first: dict[str, Weight]
    rounds: int
    is_steady: bool

    def __call__(self, number: int, prototype: str, is_first: bool) -> Weight:
        usual = self.by_round[min(number, self.rounds), prototype]
        is_late = is_first and number > 1 and prototype in self.first
        return usual.plus(self.first[prototype]) if is_late else usual


def _table(built: Built, inputs: int) -> _Table:
    small = Miniature.of(built, Size(clients=CLIENTS, examples=4, inputs=inputs, test=2))
    snapshot, rounds = small.start(), 0
    while rounds < MOST_ROUNDS and not (rounds > LATE and _is_steady(small.ledger, rounds)):
        snapshot, rounds = small.advance(snapshot), rounds + 1
    names, by_round, late = small.prototypes, dict[tuple[int, str], Weight](), dict[str, Weight]()
    for (number, client), down in small.ledger.down.items():
        weight = Weight(down, small.ledger.up.get((number, client), 0))
        if client not in small.late:
            by_round[number, names[client]] = weight
        elif number == LATE:
            late[names[client]] = weight
    first = {name: weight.minus(by_round[LATE, name]) for name, weight in late.items() if (LATE, name) in by_round}
    return _Table(by_round, first, rounds, _is_steady(small.ledger, rounds))


def _is_steady(ledger: Ledger, number: int) -> bool:
    """Whether a round weighed what the one before did, client by client."""
    return all(
        {client: size for (one, client), size in side.items() if one == number}
        == {client: size for (one, client), size in side.items() if one == number - 1}
        for side in (ledger.down, ledger.up)
    )


def _between(few: _Table, more: _Table, inputs: int, number: int, prototype: str, is_first: bool) -> Weight:
    """Along the line through two miniatures, to the real number of inputs."""
    one, other = few(number, prototype, is_first), more(number, prototype, is_first)
    return one.plus(other.minus(one), (inputs - FEW_INPUTS[0]) / (FEW_INPUTS[1] - FEW_INPUTS[0]))


def visits(federation: Federation) -> Iterator[tuple[int, str, bool]]:
    """Everybody who is drawn in every round: the round, the prototype, and whether it is the first time."""
    names, seen = federation.prototypes, Counter[int]()
    for number in range(1, federation.settings.rounds + 1):
        for client in federation.chosen(federation.key.child("round", number, "sample")):
            yield number, names[client], not seen[client]
            seen[client] += 1
