"""Rows that may be compared, with what was spent on each axis and who is ahead within a budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fedfuse.core.views import SPENT, Spent
from fedfuse.experiment.looking.budgets import Reached, best_of, reached, round_budgets
from fedfuse.experiment.looking.curves import Measured, seeds_of
from fedfuse.experiment.looking.grouping import Line
from fedfuse.experiment.looking.page.examples import shares_of
from fedfuse.experiment.looking.pictures import UNITS
from fedfuse.experiment.looking.tables import same_examples
from fedfuse.experiment.provenance import data_called
from fedfuse.report.intervals import Interval
from fedfuse.report.page.data import Axis, Group, Standing
from fedfuse.report.page.sections import amount

if TYPE_CHECKING:
    from fedfuse.experiment.looking.comparison import Comparison

MOST_PARTITIONS = 4
"""That are drawn."""
WORDS = {"rounds": "Rounds", "bytes": "Bytes sent and received", "seconds": "Seconds", "simulated": "Simulated seconds"}


def groups(comparison: Comparison, labels: Sequence[str]) -> list[Group]:
    """Rows about the same examples are a group."""
    found = []
    for number, places in enumerate(same_examples(comparison.lines)):
        lines = [comparison.lines[place] for place in places]
        axes = list(_axes(lines))
        standings = [one for axis in axes for one in _standings(lines, places, axis, labels)]
        targets = {line.runs[0].config.target for line in lines}
        shares = shares_of(lines[0].runs[0]) if number < MOST_PARTITIONS else None
        target = targets.pop() if len(targets) == 1 else None
        found.append(Group(_title(lines), places, axes, standings, target, shares))
    return found


def _title(lines: Sequence[Line]) -> str:
    """The data and how they were divided."""
    run = lines[0].runs[0]
    names = dict.fromkeys([*(line.experiment for line in lines), data_called(run.summary)])
    settings = run.partition.partition if run.partition is not None else {}
    words = [f"{key} {settings[key]:g}" for key in ("alpha",) if isinstance(settings.get(key), int | float)]
    divided = " ".join([str(settings.get("kind", "")).replace("_", " "), *words]).strip()
    return ", ".join(filter(None, [*names, divided]))


def _axes(lines: Sequence[Line]) -> Iterator[Axis]:
    for over in SPENT:
        ends = [one.spent[-1] for line in lines for one in seeds_of(line, over) if one.spent]
        if not ends:
            continue
        unit, size = next((unit, size) for unit, size in UNITS if max(ends) >= size or size == 1)
        if over == "bytes":
            yield Axis(over, WORDS[over], unit, 1 / size, 0 if size == 1 else 2)
        else:
            yield Axis(over, WORDS[over], "" if over == "rounds" else "s", 1.0, 0 if over == "rounds" else 1)


def _standings(lines: Sequence[Line], places: Sequence[int], axis: Axis, labels: Sequence[str]) -> Iterator[Standing]:
    if len(lines) < 2:
        return
    over: Spent = axis.name  # type: ignore[assignment]
    seeds = [seeds_of(line, over) for line in lines]
    names = [labels[place] for place in places]
    for budget in round_budgets(lines, over):
        stood = [reached(own, budget) for own in seeds]
        best = best_of(stood)
        cells = ["-" if own is None else _percent(own.interval) for own in stood]
        said = f"Within {amount(budget, axis)}: {sentence(names, stood, seeds, budget)}"
        yield Standing(axis.name, budget, said, None if best is None else places[best], cells)


def sentence(
    names: Sequence[str], stood: Sequence[Reached | None], seeds: Sequence[Sequence[Measured]], budget: float
) -> str:
    """Who is ahead, and how far the next one is behind, seed by seed."""
    there = [(own.interval.mean, -place) for place, own in enumerate(stood) if own is not None]
    ranked = [-place for _, place in sorted(there, reverse=True)]
    if not ranked:
        return "nothing had been measured in every seed."
    first = stood[ranked[0]]
    assert first is not None
    ahead = f"{names[ranked[0]]} is ahead with {_percent(first.interval)} % ({_in_rounds(first.rounds)})"
    if len(ranked) == 1:
        return f"{ahead}; no other row had been measured."
    second = stood[ranked[1]]
    assert second is not None
    behind = _behind(seeds[ranked[0]], seeds[ranked[1]], budget)
    return f"{ahead}; {names[ranked[1]]} follows with {_percent(second.interval)} %{behind}."


def _behind(first: Sequence[Measured], second: Sequence[Measured], budget: float) -> str:
    """Over the seeds that both have."""
    theirs = {one.seed: one for one in second}
    pairs = [(one, theirs[one.seed]) for one in first if one.seed in theirs]
    values = [[found.interval.mean for one in pair if (found := reached([one], budget))] for pair in pairs]
    differences = [both[0] - both[1] for both in values if len(both) == 2]
    if not differences:
        return ""
    interval = Interval.of(differences)
    low, high = interval.low, interval.high
    ends = "" if low is None or high is None else f" [{_points(low)}, {_points(high)}]"
    return f", {_points(interval.mean)}{ends} points behind"


def _percent(interval: Interval) -> str:
    return f"{_points(interval.mean)}" + ("" if interval.reach is None else f" ± {_points(interval.reach)}")


def _points(share: float) -> str:
    return f"{100 * share:.1f}"


def _in_rounds(rounds: Sequence[int]) -> str:
    low, high = min(rounds), max(rounds)
    return f"round {low}" if low == high else f"rounds {low} to {high}"
