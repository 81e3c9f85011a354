"""What to try next: every combination, any combination, or what the trials so far make promising.

A suggestion follows from the sweep's seed, the trial's number, and the trials that it may know of. Nothing is kept in
between, so that a sweep that is taken up again goes on with the same suggestions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal, Protocol

from fedfuse.core.errors import MissingExtraError
from fedfuse.core.randomness import Key
from fedfuse.experiment.comparison.entrants import entrants_of
from fedfuse.experiment.sweep.space import Space, Values, key_of
from fedfuse.experiment.sweep.trial import Outcome
from fedfuse.experiment.variants import Axis, Range

Sampler = Literal["grid", "random", "tpe"]
DIGITS = 4
"""Of a suggested number: no result depends on the fifth, and names and files stay readable."""
Known = Sequence[tuple[Values, Outcome | None]]
"""Earlier trials; without an outcome, one that is still running."""


class Suggester(Protocol):
    """Who says what to try."""

    def suggest(self, number: int, known: Known) -> Values | None:
        """The values of trial ``number``; None if there is nothing left to try."""


def suggester(sampler: Sampler, space: Space, seed: int, higher_is_better: bool) -> Suggester:
    if sampler == "grid":
        return Grid(space)
    return RandomSearch(space, seed) if sampler == "random" else Tpe(space, seed, higher_is_better)


class Grid:
    """Every combination of all values, those of the last key changing first."""

    def __init__(self, space: Space) -> None:
        found = entrants_of([(space.file, space.raw)], (), space.changes, space.axes)
        self.points = [{".".join(change.address): change.value for change in one.varied} for one in found]

    def suggest(self, number: int, known: Known) -> Values | None:
        return self.points[number] if number < len(self.points) else None


class RandomSearch:
    """Any value is as likely as any other."""

    def __init__(self, space: Space, seed: int) -> None:
        self.space, self.key = space, Key(seed, ("sweep",))

    def suggest(self, number: int, known: Known) -> Values:
        def drawn(axis: Axis) -> Any:
            random = self.key.child(number, key_of(axis)).numpy()
            if not isinstance(axis.given, Range):
                return axis.given[int(random.integers(len(axis.given)))]
            if axis.given.is_whole and not axis.given.log:
                return int(random.integers(int(axis.given.low), int(axis.given.high) + 1))
            return _rounded(axis.given, axis.given.between(random.random()))

        return self.space.walk(drawn)


class Tpe:
    """Optuna's tree-structured Parzen estimator (Bergstra et al., 2011): more of what did well."""

    def __init__(self, space: Space, seed: int, higher_is_better: bool) -> None:
        try:
            import optuna
        except ImportError:
            raise MissingExtraError("a sweep by Optuna (--sampler random and grid go without)", "sweep") from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.optuna, self.space, self.key = optuna, space, Key(seed, ("sweep",))
        self.direction: Literal["maximize", "minimize"] = "maximize" if higher_is_better else "minimize"
        self.axes = {key_of(axis): axis for axis in space.axes}

    def suggest(self, number: int, known: Known) -> Values:
        trial = self.study(known, self.key.child(number).number() % 2**32).ask()

        def suggested(axis: Axis) -> Any:
            if isinstance(axis.given, Range):
                low, high, log = axis.given.low, axis.given.high, axis.given.log
                if axis.given.is_whole:
                    return trial.suggest_int(key_of(axis), int(low), int(high), log=log)
                return _rounded(axis.given, trial.suggest_float(key_of(axis), low, high, log=log))
            return json.loads(trial.suggest_categorical(key_of(axis), _categories(axis)))

        return self.space.walk(suggested)

    def study(self, known: Known, seed: int) -> Any:
        """All that is known, as Optuna sees it; a trial that failed says nothing."""
        sampler = self.optuna.samplers.TPESampler(seed=seed, constant_liar=True, multivariate=False)
        study = self.optuna.create_study(direction=self.direction, sampler=sampler)
        for values, outcome in known:
            if outcome is None or outcome.state != "failed":
                study.add_trial(self._frozen(values, outcome))
        return study

    def _frozen(self, values: Values, outcome: Outcome | None) -> Any:
        states = self.optuna.trial.TrialState
        said: dict[str, Any] = {"state": states.RUNNING}
        if outcome is not None and outcome.state == "finished":
            said = {"state": states.COMPLETE, "value": outcome.value}
        elif outcome is not None:
            said = {"state": states.PRUNED, "intermediate_values": dict(outcome.steps)}
        params = {key: _as_category(self.axes[key], value) for key, value in values.items()}
        distributions = {key: self._distribution(self.axes[key]) for key in values}
        return self.optuna.trial.create_trial(params=params, distributions=distributions, **said)

    def _distribution(self, axis: Axis) -> Any:
        kinds = self.optuna.distributions
        if not isinstance(axis.given, Range):
            return kinds.CategoricalDistribution(_categories(axis))
        if axis.given.is_whole:
            return kinds.IntDistribution(int(axis.given.low), int(axis.given.high), log=axis.given.log)
        return kinds.FloatDistribution(float(axis.given.low), float(axis.given.high), log=axis.given.log)


def _categories(axis: Axis) -> list[str]:
    """Values as texts: Optuna knows no lists and no mappings."""
    assert not isinstance(axis.given, Range)
    return [json.dumps(value, sort_keys=True) for value in axis.given]


def _as_category(axis: Axis, value: Any) -> Any:
    return value if isinstance(axis.given, Range) else json.dumps(value, sort_keys=True)


def _rounded(given: Range, value: float) -> float:
    """A number in few digits, still between the ends."""
    if given.is_whole:
        return round(value)
    return min(max(float(f"{value:.{DIGITS}g}"), given.low), given.high)
