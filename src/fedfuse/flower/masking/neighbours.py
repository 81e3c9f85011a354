"""Who agrees on masks with whom: everybody with everybody, or in large federations with some, by chance."""

from __future__ import annotations

from collections.abc import Sequence

from fedfuse.federation.sums.settings import SecureSums


def number_of_neighbours(members: int, settings: SecureSums) -> int:
    """How many each of so many members has."""
    return members - 1 if members - 1 <= settings.neighbours else 2 * (settings.neighbours // 2)


def neighbours_of(ring: Sequence[int], settings: SecureSums) -> dict[int, list[int]]:
    """The neighbours of each member, in order: those nearest to it on the ring, half of them on either side."""
    size, number = len(ring), number_of_neighbours(len(ring), settings)
    if number == size - 1:
        return {one: sorted(set(ring) - {one}) for one in ring}
    aside = [step for step in range(-number // 2, number // 2 + 1) if step]
    return {one: sorted(ring[(place + step) % size] for step in aside) for place, one in enumerate(ring)}


def sign(one: int, other: int) -> int:
    """Whether a party adds the mask between the two, or takes it away."""
    return 1 if one < other else -1
