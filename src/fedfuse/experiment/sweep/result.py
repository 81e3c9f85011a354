"""What a sweep came to: its trials from best to worst, and the best setting as a file to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedfuse.core.files import write_text
from fedfuse.core.plain_json import dumps
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.experiment.frames import frame_of
from fedfuse.experiment.sheets import percent
from fedfuse.experiment.shown import bars, facts_below
from fedfuse.experiment.sweep.ledger import Ledger
from fedfuse.experiment.sweep.space import Space, Values
from fedfuse.experiment.sweep.trial import Outcome
from fedfuse.experiment.variants.words import key_of, short_keys, value_word
from fedfuse.federation.judging import Judge
from fedfuse.report import notebook
from fedfuse.report.page.charts import Drawn
from fedfuse.report.sheet import Sheet

SHOWN = 10
"""Trials in the table."""


@dataclass(frozen=True)
class Trial:
    """One setting that was tried."""

    number: int
    values: Values
    outcome: Outcome
    folders: tuple[Path, ...]
    """Its runs, a seed each; fewer if it was stopped, none if it came to the same as an earlier one."""

    @property
    def value(self) -> float | None:
        return self.outcome.value


@dataclass(frozen=True, repr=False)
class Sweep:
    """All trials that have ended, and where everything is."""

    folder: Path
    trials: tuple[Trial, ...]
    judge: Judge
    planned: int
    seeds: tuple[int, ...]
    importance: Mapping[str, float]
    """How much of the differences between trials goes back to each key, as Optuna estimates it; empty without it."""

    @property
    def best(self) -> Trial | None:
        """The best of those that were not stopped."""
        return next(iter(self.ranked), None) if any(trial.value is not None for trial in self.trials) else None

    @property
    def best_file(self) -> Path:
        """The best setting as an experiment file."""
        return self.folder / "best.yaml"

    @property
    def ranked(self) -> list[Trial]:
        """From best to worst; those without a value last, who came furthest first."""
        sign = -1 if self.judge.higher_is_better else 1
        finished = [trial for trial in self.trials if trial.value is not None]
        others = [trial for trial in self.trials if trial.value is None]
        by_value = sorted(finished, key=lambda trial: (sign * (trial.value or 0.0), trial.number))
        return [*by_value, *sorted(others, key=lambda trial: (-trial.outcome.rounds, trial.number))]

    def records(self) -> list[dict[str, Any]]:
        """One plain row for every trial."""
        keys = dict.fromkeys(key for trial in self.trials for key in trial.values)
        return [
            {
                "trial": trial.number,
                **{key: trial.values.get(key) for key in keys},
                "value": trial.value,
                "deviation": trial.outcome.deviation,
                "state": trial.outcome.state,
                "rounds": trial.outcome.rounds,
                "reason": trial.outcome.reason,
            }
            for trial in self.trials
        ]

    def to_frame(self) -> Any:
        """The same as a pandas data frame."""
        return frame_of(self.records())

    def sheet(self, shown: int | None = SHOWN) -> Sheet:
        """The best trials, and of how many they are."""
        chosen = self.ranked[:shown]
        keys = list(dict.fromkeys(key for trial in chosen for key in trial.values))
        names = short_keys([key_of(tuple(key.split("."))) for key in keys])
        rows = [
            (
                tuple(value_word(trial.values[key]) if key in trial.values else "" for key in keys),
                (*_numbers(trial.outcome, self.judge), str(trial.number)),
            )
            for trial in chosen
        ]
        headings = (f"{self.judge.by}\n{self.judge.on}", "state", "rounds", "trial")
        return Sheet(self._title(len(chosen)), tuple(names), headings, rows)

    def facts(self) -> dict[str, object]:
        """Beside the table."""
        facts: dict[str, object] = {}
        if self.importance:
            keys = short_keys([key_of(tuple(key.split("."))) for key in self.importance])
            shares = zip(keys, self.importance.values(), strict=True)
            facts["matters"] = ", ".join(f"{key} {100 * share:.0f} %" for key, share in shares)
        if self.judge.on == "test":
            facts["caution"] = "settings were chosen on the test examples, so their accuracy there is too good"
        if len(self.trials) < self.planned:
            facts["missing"] = f"{self.planned - len(self.trials)} of {self.planned} trials, which have not ended"
        facts["folder"] = self.folder
        if self.best is not None:
            facts["best"] = f"{self.best_file}: fedfuse run {self.best_file}"
        return facts

    def write(self, space: Space) -> None:
        """All of it as JSON, and the best setting as a file."""
        record = {"by": self.judge.by, "on": self.judge.on, "importance": self.importance, "trials": self.records()}
        write_text(self.folder / "sweep.json", dumps(record, indent=2) + "\n")
        if self.best is not None:
            write_text(self.best_file, _as_file(self, self.best, space.config(self.best.values, self.seeds[0]), space))

    def _title(self, shown: int) -> str:
        states = [trial.outcome.state for trial in self.trials]
        stopped = ", ".join(f"{states.count(word)} {word}" for word in ("pruned", "failed") if word in states)
        seeds = f", {len(self.seeds)} seeds, mean ± std" if len(self.seeds) > 1 else ""
        some = f"the best {shown} of {len(states)} trials" if shown < len(states) else f"{len(states)} trials"
        return f"{some}{f' ({stopped})' if stopped else ''}{seeds}"

    def __repr__(self) -> str:
        values = [trial.value for trial in self.trials if trial.value is not None]
        drawn = {"values": f"{curve}in the order of trials"} if (curve := bars(values)) else {}
        facts = (f"{name:8} {value}" for name, value in {**drawn, **self.facts()}.items())
        return "\n".join([self.sheet().text(), "", *facts])

    def _repr_html_(self) -> str:
        return f"{self.sheet().html()}{self._figure()}{facts_below(self.facts())}"

    def _figure(self) -> str:
        """The accuracy of one trial after the other; other measures have no percentages."""
        if self.judge.by != "accuracy":
            return ""
        points = [(trial.number, 100 * trial.value) for trial in self.trials if trial.value is not None]
        caption = f"accuracy on {self.judge.on} examples in percent, trial by trial"
        return notebook.curves([caption], [Drawn(0, points)], caption=caption)


def trials_of(ledger: Ledger, seeds: Sequence[int]) -> tuple[Trial, ...]:
    """Those that have ended, as far as the folder has their runs."""
    found = []
    for number, outcome in sorted(ledger.outcomes.items()):
        folders = [ledger.run_folder(number, seed) for seed in seeds]
        there = tuple(folder for folder in folders if folder.exists())
        found.append(Trial(number, ledger.values[number], outcome, there))
    return tuple(found)


def _numbers(outcome: Outcome, judge: Judge) -> tuple[str, ...]:
    """The value, how it ended, and after how many rounds."""
    value = "-" if outcome.value is None else _shown(outcome.value, judge)
    if outcome.deviation is not None:
        value = f"{value.removesuffix(' %')} ± {_shown(outcome.deviation, judge).removesuffix(' %')}"
    return value, outcome.state, str(outcome.rounds)


def _shown(value: float, judge: Judge) -> str:
    return percent(value) if judge.by == "accuracy" else f"{value:.4g}"


def _as_file(sweep: Sweep, best: Trial, config: ExperimentConfig, space: Space) -> str:
    base = space.entrant({}).config
    named = config.model_copy(
        update={"name": f"{base.name}-best", "method": config.method.model_copy(update={"label": base.method.label})}
    )
    value = _shown(best.value or 0.0, sweep.judge)
    judged = f"{sweep.judge.by} {value} on {sweep.judge.on} examples"
    return f"# Trial {best.number} of a sweep of {len(sweep.trials)}: {judged}.\n{named.to_yaml()}"
