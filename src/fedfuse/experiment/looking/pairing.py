"""Each row against a reference, seed by seed: how much better or worse, and whether that is more than chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

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


def reference_of(lines: Sequence[Line], name: str | None = None) -> str | None:
    """The method that others are compared with; None if there is nothing to compare."""
    known = list(dict.fromkeys(line.method for line in lines))
    if name is not None:
        match = next((line.method for line in lines if name in (line.method, line.title)), None)
        if match is None:
            raise ConfigError(unknown("method", name, known))
        return match
    if len(lines) < 2:
        return None
    return USUAL if USUAL in known else known[0]


def differences(lines: Sequence[Line], reference: str | None) -> list[Difference | None]:
    """For each line; None for the references themselves, and where there is none with the same examples."""
    found = [None if reference is None else _difference(line, lines, reference) for line in lines]
    asked = {place: own.p for place, own in enumerate(found) if own is not None and own.p is not None}
    corrected = holm(asked)
    return [_judged(own, corrected.get(place)) for place, own in enumerate(found)]


def _difference(line: Line, lines: Sequence[Line], reference: str) -> Difference | None:
    if line.method == reference:
        return None
    candidates = [other for other in lines if other.method == reference and _are_alike(other, line)]
    pairs = max((_pairs(line, other) for other in candidates), key=len, default={})
    if not pairs:
        return None
    values = list(pairs.values())
    return Difference(Interval.of(values), p_value(values), "unclear")


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
