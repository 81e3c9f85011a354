"""How long a run will take yet, told by the rounds that it has had."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

WINDOW = 20
"""Rounds that tell what the next ones take; with an evaluation every 2, 4, 5 or 10 rounds each kind has its share."""


def round_seconds(lengths: Sequence[float]) -> float | None:
    """What a round takes, by the latest ones in order; the first, which also warms up, only while it is needed."""
    own = list(lengths)[1:] if len(lengths) > 2 else list(lengths)
    return fmean(own[-WINDOW:]) if own else None


def seconds_left(each: float | None, rounds: int, under_way: float = 0.0) -> float | None:
    """Of so many rounds, the first of which began so many seconds ago; one that takes longer is about to end."""
    if each is None:
        return None
    return max(0.0, each - under_way) + each * (rounds - 1) if rounds > 0 else 0.0


def clock(seconds: float) -> str:
    """Hours, minutes and seconds, as bars have them."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
