"""What a sweep searches: one experiment, the keys that vary, and which of them count for which choice of parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from fedfuse.catalogue.misspelt import misfit
from fedfuse.core.errors import ConfigError, UnknownKeyError
from fedfuse.experiment.comparison.entrants import Entrant, entrant
from fedfuse.experiment.config import ExperimentConfig, Raw
from fedfuse.experiment.config.changes import Change
from fedfuse.experiment.config.schema import CHOOSERS
from fedfuse.experiment.variants import Axis, Range

Values = Mapping[str, Any]
"""By key, what a trial tries; a key that belongs to a part which the trial has not is not there."""
MOST_CHOICES = 1000


@dataclass(frozen=True)
class Space:
    """One experiment and the keys that vary."""

    file: str
    raw: Raw
    changes: tuple[Change, ...]
    axes: tuple[Axis, ...]

    @cached_property
    def in_order(self) -> tuple[Axis, ...]:
        """Choices of parts before the keys of these parts, and methods before their parts."""
        return tuple(sorted(self.axes, key=lambda axis: (not _chooses(axis), len(axis.address))))

    def walk(self, choose: Callable[[Axis], Any]) -> dict[str, Any]:
        """A trial's values: of every key that counts, given those that were chosen before, the one that is chosen."""
        chosen: list[Change] = []
        values: dict[str, Any] = {}
        for axis in self.in_order:
            if self._misfit(chosen, axis) is None:
                values[key_of(axis)] = choose(axis)
                chosen.append(axis.change(values[key_of(axis)]))
        return {key_of(axis): values[key_of(axis)] for axis in self.axes if key_of(axis) in values}

    def entrant(self, values: Values) -> Entrant:
        """The experiment with these values."""
        changes = [axis.change(values[key_of(axis)]) for axis in self.axes if key_of(axis) in values]
        return entrant(self.file, self.raw, None, self.changes, changes)

    def config(self, values: Values, seed: int) -> ExperimentConfig:
        """The same, with a seed and under a name of its own."""
        return self.entrant(values).with_seed(seed, self.axes)

    def kinds(self) -> Iterator[ExperimentConfig]:
        """The experiment with every combination of parts and methods that are tried, as far as they go together."""
        for chosen in self._choices():
            with suppress(ConfigError):
                yield entrant(self.file, self.raw, None, self.changes, chosen).config

    def check(self) -> None:
        """Every key counts in some trial, and its values are possible there."""
        for axis in self.axes:
            misfits = [(chosen, self._misfit(chosen, axis)) for chosen in self._choices(but=axis)]
            fitting = [chosen for chosen, error in misfits if error is None]
            if not fitting:
                raise misfit(f"{axis.said} fits nothing here", [error for _, error in misfits if error is not None])
            for value in ends(axis):
                self._check_value(axis, value, fitting)

    def _check_value(self, axis: Axis, value: Any, fitting: Sequence[Sequence[Change]]) -> None:
        """Refuse a value that is wrong wherever the key counts."""
        refused = None
        for chosen in fitting:
            try:
                entrant(self.file, self.raw, None, self.changes, [*chosen, axis.change(value)])
            except ConfigError as error:
                refused = error
            else:
                return
        if refused is not None:
            raise refused

    def _choices(self, but: Axis | None = None) -> Iterator[tuple[Change, ...]]:
        """Every combination of the parts and methods that are tried."""
        choosers = [axis for axis in self.in_order if _chooses(axis) and axis is not but]
        if prod(len(axis.values) for axis in choosers) > MOST_CHOICES:
            raise ConfigError(f"these are more than {MOST_CHOICES:,} combinations of parts; vary fewer of them at once")
        return product(*([axis.change(value) for value in axis.values] for axis in choosers))

    def _misfit(self, chosen: Sequence[Change], axis: Axis) -> UnknownKeyError | None:
        """Why a key does not count beside these choices; None if it does."""
        probe = axis.change(ends(axis)[0])
        try:
            return entrant(self.file, self.raw, None, self.changes, [*chosen, probe]).unfit.get(probe.said)
        except UnknownKeyError:
            raise
        except ConfigError:
            return None  # another value may do


def key_of(axis: Axis) -> str:
    return ".".join(axis.address)


def ends(axis: Axis) -> tuple[Any, ...]:
    """All values of a list, and the two ends of a range."""
    return (axis.given.low, axis.given.high) if isinstance(axis.given, Range) else axis.given


def _chooses(axis: Axis) -> bool:
    """Whether it says which other keys there are."""
    return axis.address[-1] in CHOOSERS and not isinstance(axis.given, Range)
