"""The columns of a comparison by their names: what each shows of a row, and which of two numbers is the better one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from fedfuse.core.errors import ConfigError, unknown
from fedfuse.core.plain_text import one_line
from fedfuse.core.views import Width
from fedfuse.experiment.looking.pairing import Difference
from fedfuse.experiment.looking.rows import MetricSpread, Row, Spread
from fedfuse.experiment.sheets import MISSING, largest_epsilon, to_target

SAID: Mapping[Width, str] = {"95": "mean ± 95 % interval", "std": "mean ± std", "none": "mean"}
PERCENT = "percent"


@dataclass(frozen=True)
class Look:
    """How numbers are written."""

    width: Width = "95"
    digits: int | None = None
    """After the point, in percent; None: two."""

    def reach(self, spread: Spread) -> float | None:
        """What stands behind ±; None of one value."""
        return {"95": spread.interval.reach, "std": spread.std, "none": None}[self.width]

    def spread(self, spread: Spread | None, factor: float = 1.0, digits: int = 2) -> str:
        """A deviation is of several values."""
        if spread is None:
            return "-"
        places, reach = digits if self.digits is None else self.digits, self.reach(spread)
        behind = "" if reach is None else f" ± {factor * reach:.{places}f}"
        return f"{factor * spread.mean:.{places}f}{behind}"


@dataclass(frozen=True)
class Shown:
    """One cell: its text, and its number where cells of a column can be compared."""

    text: str
    value: float | None = None


Cells = Callable[[Row, Difference | None, Look], Shown]


@dataclass(frozen=True)
class Column:
    """``better`` is None where no number is better than another."""

    name: str
    heading: str
    cell: Cells
    better: Literal["higher", "lower"] | None = None

    def cells(self, rows: Sequence[Row], differences: Sequence[Difference | None], look: Look) -> list[Shown]:
        return [self.cell(row, own, look) for row, own in zip(rows, differences, strict=True)]

    def best(self, cells: Sequence[Shown], among: Iterable[int]) -> set[int]:
        """The places of the best among some rows; none if only one has a number."""
        there = {place: value for place in among if (value := cells[place].value) is not None}
        if self.better is None or len(there) < 2:
            return set()
        best = max(there.values()) if self.better == "higher" else min(there.values())
        return {place for place, value in there.items() if value == best} if set(there.values()) != {best} else set()


def columns(rows: Sequence[Row], target: float | None) -> dict[str, Column]:
    """All that these rows can show, by name, in the order in which they are shown."""
    found = [*_accuracies(), *_spent(target), *_counts()]
    metrics = {name: own for row in reversed(rows) for name, own in row.metrics.items()}
    found += [column for name, own in metrics.items() for column in _metric(name, own)]
    return {column.name: column for column in found}


def chosen(names: Sequence[str], known: Mapping[str, Column]) -> list[Column]:
    """Those that were asked for."""
    for name in names:
        if name not in known:
            raise ConfigError(unknown("column", name, known))
    return [known[name] for name in names]


USUAL = ("accuracy_last", "accuracy_best", "rounds_to_target", "mb_up", "mb_down", "seconds")
SOMETIMES = ("epsilon", "simulated_to_target", *MISSING)
"""Shown unasked where there is something to say."""


def telling(rows: Sequence[Row], known: Mapping[str, Column]) -> list[Column]:
    """The usual columns, and those of the others that say something."""
    shown = [known[name] for name in USUAL]
    for name in SOMETIMES:
        column = known[name]
        if any(column.cell(row, None, Look()).text not in ("-", "0") for row in rows):
            shown.append(column)
    if len({row.seeds for row in rows}) > 1:
        shown.append(known["seeds"])
    return shown


def _accuracies() -> list[Column]:
    def of(name: str, heading: str, better: Literal["higher", "lower"] = "higher") -> Column:
        return Column(name, heading, partial(_spread_cell, name, 100, 2), better)

    return [
        of("accuracy_last", "accuracy\nlast, %"),
        of("accuracy_best", "accuracy\nbest, %"),
        Column("difference", "last, against\nreference", _difference_cell),
        of("accuracy_before_fusion", "before\nfusion, %"),
        of("ensemble_accuracy", "ensemble\n%"),
        Column("loss_last", "loss\nlast", partial(_spread_cell, "loss_last", 1, 4), "lower"),
    ]


def _spent(target: float | None) -> list[Column]:
    def mean(name: str, field: str, heading: str, factor: float, digits: int) -> Column:
        return Column(name, heading, partial(_mean_cell, field, factor, digits))

    return [
        Column("rounds_to_target", to_target("rounds", target), _rounds_cell, "lower"),
        Column("simulated_to_target", to_target("simulated s", target), _simulated_cell, "lower"),
        mean("mb_up", "bytes_up", "up\nMB", 1e-6, 2),
        mean("mb_down", "bytes_down", "down\nMB", 1e-6, 2),
        mean("seconds", "seconds", "time\ns", 1, 1),
        mean("simulated_seconds", "simulated_seconds", "simulated\ns", 1, 1),
        Column("epsilon", "epsilon", _epsilon_cell, "lower"),
    ]


def _counts() -> list[Column]:
    missing = [Column(name, name.replace("_", "\n"), partial(_sum_cell, name)) for name in MISSING]
    return [
        *missing,
        Column("rounds", "rounds", lambda row, _, __: Shown(_range(row.rounds))),
        Column("seeds", "seeds", lambda row, _, __: Shown(str(len(row.seeds)))),
        Column("parameters", "parameters", lambda row, _, __: Shown(_grouped(row.parameters))),
    ]


def _metric(name: str, own: MetricSpread) -> list[Column]:
    percent = own.unit == PERCENT
    better: Literal["higher", "lower"] | None = "higher" if own.better == "higher" else "lower" if own.better else None
    return [
        Column(
            name if what == "last" else f"{name}_best",
            f"{one_line(name)}\n{what}{', %' if percent else ''}",
            partial(_metric_cell, name, what, 100.0 if percent else 1.0, 2 if percent else 4),
            better,
        )
        for what in ("last", "best")
    ]


def _spread_cell(field: str, factor: float, digits: int, row: Row, _: Difference | None, look: Look) -> Shown:
    spread: Spread | None = getattr(row, field)
    return Shown(look.spread(spread, factor, digits), None if spread is None else spread.mean)


def _metric_cell(name: str, what: str, factor: float, digits: int, row: Row, _: Difference | None, look: Look) -> Shown:
    spread: Spread | None = getattr(row.metrics[name], what) if name in row.metrics else None
    return Shown(look.spread(spread, factor, digits), None if spread is None else spread.mean)


def _mean_cell(field: str, factor: float, digits: int, row: Row, _: Difference | None, __: Look) -> Shown:
    """What was spent is what it is: its spread over seeds says little."""
    spread: Spread | None = getattr(row, field)
    return Shown("-") if spread is None else Shown(f"{factor * spread.mean:.{digits}f}", spread.mean)


def _sum_cell(field: str, row: Row, _: Difference | None, __: Look) -> Shown:
    return Shown(str(sum(getattr(row, field))))


def _difference_cell(_: Row, own: Difference | None, look: Look) -> Shown:
    return Shown("-" if own is None else in_words(own, 1 if look.digits is None else look.digits))


def in_words(own: Difference, digits: int = 1) -> str:
    """``+1.3 [0.2, 2.4] better``, in percentage points."""
    interval = own.interval
    mean = f"{100 * interval.mean:+.{digits}f}"
    if interval.low is None or interval.high is None:
        return f"{mean} (1 seed)"
    return f"{mean} [{100 * interval.low:.{digits}f}, {100 * interval.high:.{digits}f}] {own.verdict}"


def _rounds_cell(row: Row, _: Difference | None, __: Look) -> Shown:
    return _until(row.rounds_to_target, row.rounds_to_target_earliest)


def _epsilon_cell(row: Row, _: Difference | None, __: Look) -> Shown:
    return Shown(largest_epsilon(row.epsilon))


def _simulated_cell(row: Row, _: Difference | None, __: Look) -> Shown:
    found = row.simulated_seconds_to_target or ()
    return _until(found, found)


def _until(values: Sequence[float | None], earliest: Sequence[float | None]) -> Shown:
    """The mean over the seeds that got there, and how many did if not all."""
    reached = [value for value in values if value is not None]
    if not reached:
        return Shown("-")
    mean = sum(reached) / len(reached)
    text = f"{'≤ ' if tuple(values) != tuple(earliest) else ''}{mean:,.1f}"
    if len(reached) == len(values):
        return Shown(text, mean)
    return Shown(f"{text} ({len(reached)} of {len(values)})")


def _range(values: Sequence[int]) -> str:
    return "-" if not values else str(min(values)) if len(set(values)) == 1 else f"{min(values)} to {max(values)}"


def _grouped(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
