"""What trials came to that were struck: their table, and their faults."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from tests.reliability.plain_table import plain_table


@dataclass(frozen=True)
class Outcome:
    """What a trial came to; no fault if it is as it should be."""

    of: str
    """The method or case that was tried."""
    strikes: int
    fault: str


def report(outcomes: Sequence[Outcome], of: str, trials: str) -> int:
    """Print the table; 1 if anything is not as it should be."""
    names = dict.fromkeys(outcome.of for outcome in outcomes)
    rows = [_row(name, [outcome for outcome in outcomes if outcome.of == name]) for name in names]
    for line in plain_table([of, trials, "strikes", "same bytes"], [*rows, _row("all", outcomes)]):
        print(line)
    faults = [f"{outcome.of}: {outcome.fault}" for outcome in outcomes if outcome.fault]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


def _row(name: str, outcomes: Sequence[Outcome]) -> list[object]:
    same = sum(not outcome.fault for outcome in outcomes)
    return [name, len(outcomes), sum(outcome.strikes for outcome in outcomes), same]
