"""When a quantity is flat: what it may have more of at the last mark than at an early one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.reliability.soak.meter import Mark


@dataclass(frozen=True)
class Rule:
    """A share more, and something besides."""

    share: float
    besides: float = 0.0

    def __str__(self) -> str:
        return f"+{self.share:.0%}" + f" +{self.besides:g}" * bool(self.besides)

    def allows(self, early: float, late: float) -> bool:
        return late <= early * (1 + self.share) + self.besides


RULES: Mapping[str, Rule] = {
    "megabytes": Rule(0.05),  # every round's record stays in memory
    "handles": Rule(0.0),
    "threads": Rule(0.0),
    "files": Rule(0.0, 2),  # how many segments hold the clients' states depends on who was drawn
    "work": Rule(0.25),  # other programs take their share of caches; of the clock, they may take any
    "kilobytes": Rule(0.01, 0.1),  # numbers get more digits
}
EARLY = 1
"""The place of the early mark: the second, when everything has been started and been in use for a while."""


def growth(marks: Sequence[Mark]) -> Iterator[str]:
    """What is not flat, in words."""
    early, late = marks[EARLY], marks[-1]
    for name, rule in RULES.items():
        before, after = getattr(early, name), getattr(late, name)
        if not rule.allows(before, after):
            yield f"{name} grew from {before:g} after round {early.round} to {after:g} after round {late.round}"
