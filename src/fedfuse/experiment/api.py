"""What the commands do, as functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedfuse.core.arguments import place, texts, truth, whole
from fedfuse.core.asked import in_words_of_asker
from fedfuse.core.errors import ConfigError
from fedfuse.core.interrupts import interruptible
from fedfuse.experiment.arguments import check_said_once, check_sections, seeds_of, several
from fedfuse.experiment.comparison import Cell, Comparison, complete, finished_runs, plan, rehearse
from fedfuse.experiment.comparison.running import silence
from fedfuse.experiment.estimate import Estimate, estimate_of
from fedfuse.experiment.live import Progress, listeners
from fedfuse.experiment.result import RunResult
from fedfuse.experiment.run import Experiment, Given, is_run_in, run_folder
from fedfuse.experiment.sweep import Sweep, plan_sweep
from fedfuse.experiment.variants.axes import Overs
from fedfuse.federation.events import Listener
from fedfuse.federation.folder import RunFolder
from fedfuse.methods import Method

MethodGiven = str | Method | Mapping[str, Any]
"""A method's name or address, one that was made in Python, or a mapping of a name and what is changed in it."""
CHANGE = "federation.rounds=20"
"""What an assignment looks like."""


def run(
    experiment: Given,
    *,
    method: MethodGiven | None = None,
    seed: int | None = None,
    assignments: Sequence[str] = (),
    out: str | Path | None = None,
    resume: bool | None = None,
    overwrite: bool = False,
    progress: Progress = "auto",
    **sections: Any,
) -> RunResult:
    """Run one experiment to its end, writing a run folder. If it is there already it is read, or gone on with.

    ``experiment`` is a file, a preset, a run folder, a mapping of keys or an Experiment; ``sections`` are laid over it
    key by key. ``overwrite`` replaces whatever run the folder holds; ``resume=False`` refuses even this very one.
    ``progress`` prints a line per round, or is called with every event.

    >>> fedfuse.run("digits", method="fedavg", federation={"rounds": 2}, training={"epochs": 1}).summary["rounds"]
    2
    """
    check_sections(run, sections)
    loaded = _loaded(experiment, method, seed, assignments, sections)
    is_there = not overwrite and is_run_in(experiment, loaded.config) if resume is None else resume
    folder = run_folder(experiment, place("out", out), is_there, overwrite)
    with interruptible(overwrite):
        return loaded.run(folder, resume, overwrite, listeners(progress, loaded.config.label))


def estimate(
    experiment: Given,
    *,
    method: MethodGiven | None = None,
    seed: int | None = None,
    assignments: Sequence[str] = (),
    **sections: Any,
) -> Estimate:
    """What a run would cost here: seconds, memory, traffic and disk. A few rounds are played in miniature.

    >>> cost = fedfuse.estimate("digits", method="fedavg", federation={"rounds": 2})
    >>> cost.bytes_up == fedfuse.run("digits", method="fedavg", federation={"rounds": 2}).summary["bytes_up"]
    True
    """
    check_sections(estimate, sections)
    return estimate_of(_loaded(experiment, method, seed, assignments, sections).config)


def compare(
    experiments: Given | Sequence[Given],
    methods: MethodGiven | Sequence[MethodGiven] = (),
    seeds: int | Sequence[int] = (),
    *,
    assignments: Sequence[str] = (),
    jobs: int = 1,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress = "auto",
    over: Overs | Sequence[str] = (),
    **sections: Any,
) -> Comparison:
    """Run methods, seeds and variants side by side. Runs that are there are kept, unfinished ones go on.

    Without methods or seeds, those that the experiments name themselves. ``over`` varies keys:
    ``{"partition.alpha": [0.1, 1.0]}``. A run folder, or a folder of runs, stands for what is in it. Several ``jobs``
    have processes of their own. After a failure, what was finished until then is in ``comparison.json`` of the folder.

    >>> fedfuse.compare("digits", ["fedavg", "fedprox"], [0, 1], federation={"rounds": 1}).rows[1].method
    'fedprox'
    """
    check_sections(compare, sections)
    jobs, overwrite = whole("jobs", jobs, least=1), truth("overwrite", overwrite)
    chosen, seeds = several("methods", methods, (str, Mapping, Method)), seeds_of(seeds)
    check_said_once(sections, methods=chosen, seeds=seeds)
    given = several("experiments", experiments, (str, Path, Mapping, Experiment))
    if not given:
        raise ConfigError("there is nothing to compare; give a file, a preset, a run folder or a mapping")
    changes, varied = texts("assignments", assignments, CHANGE), _varied(over)
    study = plan(given, chosen, seeds, changes, place("out", out), sections, varied)
    listener = _told(progress)
    for remark in study.remarks:
        listener({"event": "study_remark", "remark": in_words_of_asker(remark)})
    with interruptible():
        return complete(rehearse(study.cells, overwrite), jobs, listener, study.folder)


def sweep(
    experiment: Given,
    over: Overs | Sequence[str],
    *,
    budget: int | None = None,
    seeds: int | Sequence[int] = (),
    sampler: str | None = None,
    sampler_seed: int = 0,
    prune: bool = False,
    assignments: Sequence[str] = (),
    jobs: int = 1,
    out: str | Path | None = None,
    progress: Progress = "auto",
    **sections: Any,
) -> Sweep:
    """Try settings of an experiment: every combination, or as many as ``budget`` says, those next that did well so far.

    ``over`` maps keys to lists, a ``Range``, or texts as the command line has them. The same call goes on with a sweep
    that was interrupted, and with a larger budget adds to it. ``sampler`` is ``grid``, ``random`` or ``tpe`` (Optuna's,
    the default with a budget). ``prune`` stops runs that are worse than the median of earlier ones.

    >>> short = {"federation": {"rounds": 1}, "training": {"epochs": 1}}
    >>> found = fedfuse.sweep("digits", {"training.batch_size": [16, 64]}, method="fedavg", **short)
    >>> sorted(trial.values["training.batch_size"] for trial in found.trials)
    [16, 64]
    """
    check_sections(sweep, sections)
    jobs, prune, chosen = whole("jobs", jobs, least=1), truth("prune", prune), seeds_of(seeds)
    check_said_once(sections, seeds=chosen)
    trials = None if budget is None else whole("budget", budget, least=1)
    changes, number = texts("assignments", assignments, CHANGE), whole("sampler_seed", sampler_seed)
    plan = plan_sweep(
        experiment, _varied(over), trials, chosen, changes, sections, sampler, number, prune, place("out", out)
    )
    listener = _told(progress)
    for remark in plan.remarks:
        listener({"event": "study_remark", "remark": in_words_of_asker(remark)})
    with interruptible():
        return plan.run(jobs, listener)


def run_all(
    experiments: Mapping[str, Experiment] | Mapping[Path, Experiment],
    *,
    jobs: int = 1,
    progress: Progress = "auto",
) -> dict[Path, RunResult]:
    """Run experiments, each into the folder that it stands under. Runs that are there are kept, unfinished ones go on.

    >>> short = Experiment.load("digits", method="fedavg", federation={"rounds": 1})
    >>> [result.is_finished for result in fedfuse.run_all({"runs/short": short}).values()]
    [True]
    """
    jobs = whole("jobs", jobs, least=1)
    if not isinstance(experiments, Mapping) or not all(isinstance(one, Experiment) for one in experiments.values()):
        raise ConfigError("run_all takes experiments by their folders: {'runs/a': fedfuse.Experiment.load('digits')}")
    cells = [Cell(experiment, RunFolder(Path(folder))) for folder, experiment in experiments.items()]
    with interruptible():
        return {cell.folder.path: result for cell, result in finished_runs(cells, jobs, _told(progress))}


def _loaded(
    experiment: Given,
    method: MethodGiven | None,
    seed: int | None,
    assignments: Sequence[str],
    sections: Mapping[str, Any],
) -> Experiment:
    said = {key: value for key, value in (("method", method), ("seed", seed)) if value is not None}
    return Experiment.load(experiment, texts("assignments", assignments, CHANGE), **said, **sections)


def _varied(over: Overs | Sequence[str]) -> Overs | Sequence[str]:
    return over if isinstance(over, Mapping) else texts("over", over, "partition.alpha=0.1,1.0")


def _told(progress: Progress) -> Listener:
    """Whoever hears of several runs, as one listener."""
    return next(iter(listeners(progress)), silence)
