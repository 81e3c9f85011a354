"""Few cases in which any two parts meet: most faults of a combination are faults of a pair of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import Any, TypeAlias

Slots: TypeAlias = Mapping[str, Sequence[Any]]
"""What may fill each slot: classes, words, None, anything that can be hashed."""
Clashes: TypeAlias = Mapping[tuple[str, str], Callable[[Any, Any], bool]]
"""For two slots, whether two values of theirs cannot be combined."""
Case: TypeAlias = dict[str, Any]
"""One value for each slot."""


def pairwise(slots: Slots, clashes: Clashes) -> list[Case]:
    """Cases without a clash, in which every two values meet that can; the same ones in every call.

    Greedy: from a pair that has not met, slot by slot with the value that brings the most pairs that have not.
    """
    values = [[(slot, value) for value in slots[slot]] for slot in slots]
    apart = dict.fromkeys(pair for one, other in combinations(values, 2) for pair in product(one, other))
    cases = []
    while apart:
        pair = next(iter(apart))
        del apart[pair]
        if case := _completed(dict(pair), slots, clashes, apart):
            cases.append(case)
            for met in _pairs(case, slots):
                apart.pop(met, None)
    return cases


def _completed(case: Case, slots: Slots, clashes: Clashes, apart: Mapping[Any, None]) -> Case | None:
    """The case with its open slots filled, or None if that cannot be done without a clash."""
    if any(clash(case[one], case[other]) for (one, other), clash in clashes.items() if {one, other} <= case.keys()):
        return None
    open_slots = [slot for slot in slots if slot not in case]
    if not open_slots:
        return {slot: case[slot] for slot in slots}
    fuller = [{**case, open_slots[0]: value} for value in slots[open_slots[0]]]
    fuller.sort(key=lambda case: -sum(pair in apart for pair in _pairs(case, slots)))
    return next(filter(None, (_completed(case, slots, clashes, apart) for case in fuller)), None)


def _pairs(case: Case, slots: Slots) -> list[Any]:
    return list(combinations([(slot, case[slot]) for slot in slots if slot in case], 2))
