"""Several seeds of one thing, round by round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


def in_common(seeds: Sequence[Mapping[int, T]]) -> dict[int, list[T]]:
    """What each seed has in the rounds that all of them have: the mean of fewer seeds would jump."""
    shared = set.intersection(*map(set, seeds)) if seeds else set()
    return {number: [seed[number] for seed in seeds] for number in sorted(shared)}
