"""What a page about runs shows, as plain values: made by whoever reads the folders, turned into HTML by ``render``.

Nothing here knows where it came from, so that the same page can be a file, or be shown anew while runs go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fedfuse.report.sheet import Sheet


@dataclass(frozen=True)
class Axis:
    """What is spent: ``factor`` makes the number that is shown from the one that is stored."""

    name: str
    label: str
    unit: str
    factor: float = 1.0
    digits: int = 0


@dataclass(frozen=True)
class Seed:
    """One run: the rounds that were measured, the accuracy, and by the name of each axis what was spent by then."""

    seed: int
    rounds: Sequence[int]
    values: Sequence[float]
    spent: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Fusion:
    """Accuracies round by round, over all seeds: before and after fusion, and of the ensemble."""

    after: Sequence[tuple[float, float]]
    before: Sequence[tuple[float, float]]
    ensemble: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Row:
    """A line of the table and of the pictures; ``note`` says if its runs are not finished."""

    label: str
    seeds: Sequence[Seed]
    fusion: Fusion | None = None
    note: str = ""


@dataclass(frozen=True)
class Standing:
    """Which row is ahead within a budget, in a sentence, and the texts of all rows of the group."""

    axis: str
    budget: float
    sentence: str
    best: int | None
    cells: Sequence[str]


@dataclass(frozen=True)
class Shares:
    """Who had which examples: a column for each client or group of neighbours, a row for each class."""

    words: str
    clients: Sequence[str]
    classes: Sequence[str]
    counts: Sequence[Sequence[float]]
    """Examples by class and column."""
    sizes: Sequence[float]
    neighbours: int = 1
    """Clients that share a column."""


@dataclass(frozen=True)
class Group:
    """Rows about the same examples, divided in the same way: what may be compared."""

    title: str
    rows: Sequence[int]
    axes: Sequence[Axis]
    standings: Sequence[Standing]
    target: float | None
    shares: Shares | None


@dataclass(frozen=True)
class Classes:
    """How often each class was recognised, by row; shares from 0 to 1, None where there was no example."""

    title: str
    names: Sequence[str]
    examples: Sequence[int]
    rows: Sequence[str]
    shares: Sequence[Sequence[float | None]]
    """By class and row."""


@dataclass(frozen=True)
class Square:
    """What one row takes each class for; ``counts`` by true class and answer, over all seeds."""

    label: str
    names: Sequence[str]
    counts: Sequence[Sequence[int]]


@dataclass(frozen=True)
class Differing:
    """A key of the configs, and who has which value."""

    key: str
    values: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class RunFacts:
    """One run in a few words, with the command that repeats it or goes on."""

    label: str
    state: str
    facts: Mapping[str, Sequence[str]]
    command: str


@dataclass(frozen=True)
class PageData:
    """All of it."""

    title: str
    subtitle: str
    table: Sheet
    differences: Sheet | None
    metrics: Sheet | None
    fusion: Sheet | None
    attendance: Sheet
    rows: Sequence[Row]
    groups: Sequence[Group]
    quantiles: Sequence[float]
    """By how many standard errors an interval extends, by the number of seeds."""
    classes: Sequence[Classes] = ()
    squares: Sequence[Square] = ()
    differing: Sequence[Differing] = ()
    recipes: Sequence[Differing] = ()
    """Keys in which methods differ."""
    runs: Sequence[RunFacts] = ()
    reasons: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By row, why clients that were asked did not count."""
    notes: Sequence[str] = ()
