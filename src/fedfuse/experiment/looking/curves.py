"""What was measured round by round, and how much had been spent by then: rounds, bytes, seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from fedfuse.core.errors import ConfigError, unknown
from fedfuse.core.views import SPENT, Spent
from fedfuse.experiment.looking.grouping import Line
from fedfuse.experiment.looking.stored_run import StoredRun
from fedfuse.federation import RoundRecord
from fedfuse.report.seeds import in_common

OWN = ("accuracy", "loss", "before_fusion", "ensemble")
"""What is measured of every run; metrics are named by the experiment."""


@dataclass(frozen=True)
class Measured:
    """One seed of a line: what had been spent, and what was measured then; one entry per measured round."""

    seed: int
    rounds: tuple[int, ...]
    spent: tuple[float, ...]
    values: tuple[float, ...]

    @property
    def points(self) -> list[tuple[float, float]]:
        return list(zip(self.spent, self.values, strict=True))


def curve(run: StoredRun, prototype: str | None, what: str = "accuracy") -> list[tuple[RoundRecord, float]]:
    """The rounds in which it was measured; without a prototype, of the ensemble."""
    found = [(record, _value(record, prototype, what)) for record in run.result.history]
    return [(record, value) for record, value in found if value is not None]


def _value(record: RoundRecord, prototype: str | None, what: str) -> float | None:
    if prototype is None or what == "ensemble":
        return record.ensemble_accuracy if what in OWN else record.ensemble_metrics.get(what)
    own = record.prototypes[prototype]
    if what == "before_fusion":
        return own.accuracy_before_fusion
    return getattr(own, what) if what in OWN else own.metrics.get(what)


def spent_after(run: StoredRun, over: Spent) -> list[float] | None:
    """How much until the end of each round; None where there is no clock."""
    history = run.result.history
    if over == "simulated":
        clocks = [record.clock for record in history]
        return [clock.total for clock in clocks if clock] if history and all(clocks) else None
    return list(accumulate(SPENDING[over](record) for record in history))


SPENDING: Mapping[str, Callable[[RoundRecord], float]] = {
    "rounds": lambda _: 1,
    "bytes": lambda record: record.bytes_up + record.bytes_down,
    "seconds": lambda record: record.seconds,
}


def seeds_of(line: Line, over: Spent = "rounds", what: str = "accuracy") -> list[Measured]:
    """Every seed of a line; none if some run has no clock that is asked for."""
    found = []
    for run in line.runs:
        after = spent_after(run, over)
        if after is None:
            return []
        measured = curve(run, line.prototype, what)
        rounds = tuple(record.round for record, _ in measured)
        spent = tuple(after[number - 1] for number in rounds)
        found.append(Measured(run.seed, rounds, spent, tuple(value for _, value in measured)))
    return found


def together(seeds: Sequence[Measured]) -> Iterator[tuple[int, list[float], list[float]]]:
    """Round by round what all seeds had spent and measured, in the rounds that all of them measured."""
    by_round = [{n: (s, v) for n, s, v in zip(one.rounds, one.spent, one.values, strict=True)} for one in seeds]
    for number, several in in_common(by_round).items():
        yield number, [spent for spent, _ in several], [value for _, value in several]


def metrics_of(lines: Sequence[Line]) -> list[str]:
    """The metrics that some run names."""
    names = (
        name
        for line in lines
        for run in line.runs
        for record in run.result.history[-1:]
        for own in (*record.prototypes.values(),)
        for name in own.metrics
    )
    return list(dict.fromkeys(names))


def check_spent(over: str) -> None:
    """Refuse what nobody counts."""
    if over not in SPENT:
        raise ConfigError(unknown("axis", over, SPENT))


def check_measured(what: str, lines: Sequence[Line]) -> None:
    """Refuse what no run measured."""
    known = [*OWN, *metrics_of(lines)]
    if what not in known:
        raise ConfigError(unknown("measure", what, known))
    if not any(curve(run, line.prototype, what) for line in lines for run in line.runs):
        raise ConfigError(f"no run has measured '{what}'")
