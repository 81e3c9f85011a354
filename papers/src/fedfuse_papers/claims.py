"""What a paper says about its own numbers, as data, and whether ours agree.

A claim compares cells in pairs: those with the labels in ``higher`` against those with the labels in ``lower``, alike
in all other axes. Runs with the same seed share data, partition, initial weights and sampled clients, so the difference
is taken seed by seed, d_s = higher_s - lower_s, and its mean has the interval

    mean(d) +- t_{0.975, n-1} std(d) / sqrt(n)

The claim holds if the whole interval is above the margin ``by``, does not hold if the whole interval is below it, and
otherwise more seeds are needed; with fewer than three seeds they are needed in any case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from fedfuse import ConfigError
from fedfuse.plugins import Settings
from fedfuse.report.intervals import Interval
from fedfuse_papers.entry import Entry, Label, Labels, agrees

LEAST_SEEDS = 3
Answer = Literal["holds", "does not hold", "not enough seeds"]


class Claim(Settings):
    """One sentence of a paper."""

    says: str = Field(description="the claim in words")
    higher: Labels
    lower: Labels
    where: dict[str, tuple[Label, ...]] = Field(default_factory=dict, description="only in cells with these labels")
    by: float = Field(0.0, description="by more than this many percentage points or rounds")

    def check(self, entry: Entry, where: str) -> None:
        """Refuse labels that the entry does not have, and cells that are compared with themselves."""
        wanted = [self.higher, self.lower, *({axis: label} for axis, labels in self.where.items() for label in labels)]
        try:
            for labels in wanted:
                entry.check(labels, where)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        if self.higher.keys() != self.lower.keys() or self.higher == self.lower:
            raise ConfigError(f"{where}: '{self.says}' should name different labels of the same axes")

    def pairs(self, cells: Sequence[Labels]) -> list[tuple[Labels, Labels]]:
        """The cells that the claim compares."""
        inside = [c for c in cells if all(c[axis] in labels for axis, labels in self.where.items())]
        partners = {_rest(c, self.lower): c for c in inside if agrees(c, self.lower)}
        return [
            (cell, partners[_rest(cell, self.higher)])
            for cell in inside
            if agrees(cell, self.higher) and _rest(cell, self.higher) in partners
        ]


def _rest(cell: Labels, named: Labels) -> tuple[str, ...]:
    return tuple(label for axis, label in cell.items() if axis not in named)


@dataclass(frozen=True)
class Verdict:
    """A claim about one pair of cells."""

    claim: str
    higher: Labels
    lower: Labels
    printed: float | None
    """The difference of the printed numbers."""
    ours: Interval | None
    answer: Answer


def judge(higher: Mapping[int, float], lower: Mapping[int, float], by: float) -> tuple[Interval | None, Answer]:
    """Two cells' numbers by seed; only seeds that both have count."""
    shared = sorted(higher.keys() & lower.keys())
    if not shared:
        return None, "not enough seeds"
    interval = Interval.of([higher[seed] - lower[seed] for seed in shared])
    if interval.seeds < LEAST_SEEDS or interval.low is None or interval.high is None:
        return interval, "not enough seeds"
    if interval.low > by:
        return interval, "holds"
    return interval, "does not hold" if interval.high < by else "not enough seeds"
