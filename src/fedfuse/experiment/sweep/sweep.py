"""A sweep from its beginning to its end: what it searches, how it is judged, its trials, its result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedfuse.core.errors import ConfigError, StopRun, unknown
from fedfuse.experiment.comparison.running import silence
from fedfuse.experiment.config import ExperimentConfig, merge, validate
from fedfuse.experiment.config.changes import Change, apply, changes_of
from fedfuse.experiment.estimate import Estimate, estimate_all
from fedfuse.experiment.judged import judged_on
from fedfuse.experiment.run import Given, read_raw, where
from fedfuse.experiment.sweep.importance import importance
from fedfuse.experiment.sweep.ledger import About, Ledger
from fedfuse.experiment.sweep.playing import Course
from fedfuse.experiment.sweep.result import Sweep, trials_of
from fedfuse.experiment.sweep.space import Space, Values, key_of
from fedfuse.experiment.sweep.suggesting import Grid, RandomSearch, Sampler, suggester
from fedfuse.experiment.variants import Axis, Range, axes_of, folder_words, words_of
from fedfuse.experiment.variants.axes import Overs
from fedfuse.experiment.variants.words import shortened_words
from fedfuse.federation.events import Listener
from fedfuse.federation.judging import Judge, On

SOME = 3
"""Trials that are looked at, where nobody knows which there will be."""
SAMPLERS = ("grid", "random", "tpe")
MOST_TRIALS = 100_000


@dataclass(frozen=True)
class SweepPlan:
    """What a sweep will do, before it does anything."""

    space: Space
    sampler: Sampler
    seed: int
    seeds: tuple[int, ...]
    judge: Judge
    best_round: bool
    prune: bool
    budget: int
    folder: Path

    @property
    def remarks(self) -> list[str]:
        """What a person should know."""
        what = "the best round of each run" if self.best_round else "the last round of each run"
        said = [f"judged by {self.judge.by} on {self.judge.on} examples, in {what}"]
        if self.judge.on == "test":
            said.append(
                "there are no validation examples, so that settings are chosen on the test split, and what the best "
                "has there is too good; data.validation=0.1 keeps some training examples for it"
            )
        return said

    def about(self, jobs: int) -> About:
        changed = hashlib.sha256(json.dumps(self._base().identity(), sort_keys=True).encode()).hexdigest()
        return About(
            experiment=changed,
            over=tuple(f"{key_of(axis)}={_said(axis)}" for axis in self.space.axes),
            sampler=self.sampler,
            seed=self.seed,
            seeds=self.seeds,
            judged=f"{self.judge.by} on {self.judge.on}",
            prune=self.prune,
            window=1 if jobs == 1 else 2 * jobs,
        )

    def likely(self) -> list[ExperimentConfig]:
        """Some of the experiments that it may try, to tell from them what it will cost."""
        if self.sampler == "grid":
            points: Sequence[Values] = Grid(self.space).points[: self.budget]
        else:
            search = RandomSearch(self.space, self.seed)
            points = [search.suggest(number, []) for number in range(min(self.budget, SOME))]
        return [self.space.config(values, seed) for values in points for seed in self.seeds]

    def estimate(self, jobs: int = 1) -> Estimate:
        """Of all trials, if none is stopped early."""
        found = estimate_all(self.likely(), jobs, self.budget * len(self.seeds))
        return replace(found, may_end_early=found.may_end_early or self.prune)

    def _base(self) -> ExperimentConfig:
        return self.space.entrant({}).config

    def run(self, jobs: int = 1, listener: Listener = silence) -> Sweep:
        """Play what is left of it. After a failure, too, what had ended until then is written."""
        ledger = Ledger(self.folder)
        with ledger.opened(self.about(jobs)) as about:
            search = suggester(self.sampler, self.space, self.seed, self.judge.higher_is_better)
            course = Course(
                self.space, search, ledger, self.seeds, self.judge, self.best_round, self.prune, about.window, listener
            )
            budget = max(self.budget, len(ledger.values))
            told = {"runs": budget * len(self.seeds), "finished": len(ledger.outcomes) * len(self.seeds)}
            listener({"event": "study_started", **told})
            try:
                with suppress(StopRun):  # a listener had enough
                    course.play(budget, jobs)
            finally:
                found = self._concluded(ledger, budget)
                with suppress(StopRun):
                    listener({"event": "sweep_concluded", "sweep": found})
            return found

    def _concluded(self, ledger: Ledger, budget: int) -> Sweep:
        trials = trials_of(ledger, self.seeds)
        known = [(trial.values, trial.outcome) for trial in trials]
        matters = importance(self.space, known, self.judge.higher_is_better)
        found = Sweep(self.folder, trials, self.judge, budget, self.seeds, matters)
        found.write(self.space)
        return found


def plan_sweep(
    experiment: Given,
    over: Sequence[str] | Overs,
    budget: int | None = None,
    seeds: Sequence[int] = (),
    assignments: Sequence[str] = (),
    sections: Mapping[str, Any] | None = None,
    sampler: str | None = None,
    seed: int = 0,
    prune: bool = False,
    out: str | Path | None = None,
) -> SweepPlan:
    """Everything found possible, as far as that can be said without data; nothing is written."""
    axes = tuple(axes_of(over))
    if not axes:
        raise ConfigError("a sweep needs something to vary: --over training.optimizer.learning_rate=0.01..1:log")
    raw, sections = read_raw(experiment), sections or {}
    changes = [Change.read(assignment) for assignment in assignments]
    _check_said_once(changes, axes)
    laid_over = merge(raw, sections)
    base = validate(apply(laid_over, changes), where(experiment))
    has_validation = bool(base.data.validation)
    words = shortened_words(words_of(folder_words(raw, [*changes_of(sections), *changes], base)))
    if has_validation:
        changes.append(Change.of("evaluation.validation=true", ("evaluation", "validation"), True))
    space = Space(where(experiment), laid_over, tuple(changes), axes)
    space.check()
    chosen = _sampler(sampler, axes, budget)
    if chosen == "grid" and seed:
        raise ConfigError(f"--sampler-seed {seed} changes nothing: a grid has every combination in one order")
    on = _judged_on(space, base, has_validation)
    return SweepPlan(
        space=space,
        sampler=chosen,
        seed=seed,
        seeds=tuple(seeds) or (base.seed,),
        judge=Judge.of(base.evaluation, on, base.answers_as_ensemble),
        best_round=base.evaluation.judges,
        prune=prune,
        budget=_budget(budget, chosen, space),
        folder=Path(out) if out else Path("runs") / "-".join(filter(None, ["sweep", base.name, words])),
    )


def _judged_on(space: Space, base: ExperimentConfig, has_validation: bool) -> On:
    """The same examples for all trials: test where some method cannot be judged on others."""
    found = {judged_on(config, int(has_validation)) for config in (base, *space.kinds())}
    return "test" if "test" in found else "validation"


def _sampler(given: str | None, axes: Sequence[Axis], budget: int | None) -> Sampler:
    """Without a budget every combination is tried, if there is an end of them."""
    if given is not None and given not in SAMPLERS:
        raise ConfigError(unknown("sampler", given, SAMPLERS))
    if given == "grid" or (given is None and budget is None):
        for axis in axes:
            if isinstance(axis.given, Range) and axis.given.values is None:
                raise ConfigError(
                    f"{axis.said}: there is no end of numbers between these; say how many trials, --budget 30, or how "
                    f"many numbers: {key_of(axis)}={Range(axis.given.low, axis.given.high, axis.given.log, 5)}"
                )
        return "grid"
    return "random" if given == "random" else "tpe"


def _budget(budget: int | None, sampler: Sampler, space: Space) -> int:
    if sampler == "grid":
        points = len(Grid(space).points)
        return points if budget is None else min(budget, points)
    if budget is None:
        raise ConfigError(f"how many trials? Sampler {sampler} has no end by itself; say --budget 30")
    if not 1 <= budget <= MOST_TRIALS:
        raise ConfigError(f"--budget {budget}: write a number of trials from 1 to {MOST_TRIALS:,}")
    return budget


def _check_said_once(changes: Sequence[Change], axes: Sequence[Axis]) -> None:
    for change in changes:
        for axis in axes:
            if change.address == axis.address:
                raise ConfigError(f"{change.said} and {axis.said} both say what it is; keep one of them")


def _said(axis: Axis) -> str:
    return str(axis.given) if isinstance(axis.given, Range) else json.dumps(axis.given, sort_keys=True)
