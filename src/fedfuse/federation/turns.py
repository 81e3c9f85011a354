"""What comes in any order, in the order of the clients: so results do not depend on who was first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

Value = TypeVar("Value")


def in_turn(order: Sequence[int], arrivals: Iterable[tuple[int, Value | None]]) -> Iterator[Value]:
    """What arrives, as soon as everybody before has come; None is nothing to wait for. Who never comes is left out."""
    early: dict[int, Value | None] = {}
    place = 0
    for client, value in arrivals:
        early[client] = value
        del value  # so that nothing is held here that was handed out
        while place < len(order) and order[place] in early:
            yield from _if_any(early.pop(order[place]))
            place += 1
    for client in order[place:]:
        yield from _if_any(early.pop(client, None))


def _if_any(value: Value | None) -> list[Value]:
    return [] if value is None else [value]
