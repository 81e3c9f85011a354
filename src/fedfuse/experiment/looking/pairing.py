"""Each row against a reference, seed by seed: how much better or worse, and whether that is more than chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from fedfuse.core.errors import ConfigError, unknown
from fedfuse.experiment.looking.curves import curve
from fedfuse.experiment.looking.grouping import Line, examples_of
from fedfuse.report.intervals import Interval, holm, p_value

LEAST_SEEDS = 3
"""For a verdict."""
LEVEL = 0.05
USUAL = "fedavg"
"""What methods are compared with unless somebody says otherwise."""
Verdict = Literal["better", "worse", "unclear", "equal", "too few seeds"]


@dataclass(frozen=True)
class Difference:
    """A row minus its reference, over the seeds that both have with the same examples."""

    interval: Interval
    p: float | None
    """Of the paired t-test, as it stands after Holm's correction for all rows; None where nothing varies."""
    verdict: Verdict
    against: int
    """The place of its reference among the rows."""


def reference_of(lines: Sequence[Line], name: str | None = None) -> str | None:
    """The method that others are compared with; None if there is nothing to compare."""
    known = list(dict.fromkeys(line.method for line in lines))
    if name is not None:
        match = next((line.method for line in lines if name in (line.method, line.title)), None)
        if match is None:
            raise ConfigError(unknown("method", name, known))
        if len(lines) < 2:
            raise ConfigError(f"here is nothing but '{match}'; --reference is for several rows")
        return match
    if len(lines) < 2:
        return None
    return USUAL if USUAL in known else known[0]


def differences(lines: Sequence[Line], reference: str | None) -> list[Difference | None]:
    """For each line; None for the references themselves, and where there is none with the same examples."""
    found = [None if reference is None else _difference(place, lines, reference) for place in range(len(lines))]
    asked = {place: own.p for place, own in enumerate(found) if own is not None and own.p is not None}
    corrected = holm(asked)
    return [_judged(own, corrected.get(place)) for place, own in enumerate(found)]


def called(lines: Sequence[Line], found: Sequence[Difference | None], reference: str) -> str | None:
    """What all these differences are from, in words; None if that takes a word for each of them."""
    against = {place: own.against for place, own in enumerate(found) if own is not None}
    if len({label_of(lines, place) for place, line in enumerate(lines) if line.method == reference}) == 1:
        return reference
    if all(_around(lines[place]) == _around(lines[other]) for place, other in against.items()):
        return f"{reference} of the same setting"
    names = {label_of(lines, place) for place in against.values()}
    return names.pop() if len(names) == 1 else None


def label_of(lines: Sequence[Line], place: int) -> str:
    """A row's name as a reference, without its model."""
    line = lines[place]
    several = len({other.experiment for other in lines}) > 1
    return " ".join([*[line.experiment] * several, line.method, *[line.variant] * bool(line.variant)])


def _difference(place: int, lines: Sequence[Line], reference: str) -> Difference | None:
    against = _row_against(place, lines, reference)
    if against in (None, place):
        return None
    values = list(_pairs(lines[place], lines[against]).values())
    return Difference(Interval.of(values), p_value(values), "unclear", against)


def _row_against(place: int, lines: Sequence[Line], reference: str) -> int | None:
    """The first row of the reference in the same setting; of all rows, if it has none, or nothing else is in it."""
    line = lines[place]
    alike = [other for other, own in enumerate(lines) if _are_alike(own, line)]
    beside = [other for other in alike if _around(lines[other]) == _around(line)]
    for rows in ([beside] if len(beside) > 1 else []) + [alike]:
        known = (other for other in rows if lines[other].method == reference)
        first = next((other for other in known if other == place or _pairs(line, lines[other])), None)
        if first is not None:
            return first
    return None


def _around(line: Line) -> Mapping[str, Any]:
    """The setting in which a method was: all but the method itself, and the code of its own parts."""
    return {key: value for key, value in line.setting.items() if key not in ("method", "code")}


def _are_alike(one: Line, other: Line) -> bool:
    """Whether both are about the same model, or one of them about an ensemble."""
    return one.prototype == other.prototype or None in (one.prototype, other.prototype)


def _pairs(line: Line, reference: Line) -> Mapping[int, float]:
    """By seed, the difference of the last accuracies of runs that had the same examples."""
    theirs = {run.seed: run for run in reference.runs}
    found = {}
    for run in line.runs:
        other = theirs.get(run.seed)
        if other is None or examples_of(other) != examples_of(run):
            continue
        own, their = (curve(one, of.prototype) for one, of in ((run, line), (other, reference)))
        if own and their:
            found[run.seed] = own[-1][1] - their[-1][1]
    return found


def _judged(own: Difference | None, p: float | None) -> Difference | None:
    if own is None:
        return None
    return replace(own, p=p, verdict=_verdict(own.interval, p))


def _verdict(interval: Interval, p: float | None) -> Verdict:
    if interval.seeds < LEAST_SEEDS:
        return "too few seeds"
    if p is None:
        return "equal" if interval.mean == 0 else "unclear"
    if p >= LEVEL:
        return "unclear"
    return "better" if interval.mean > 0 else "worse"
