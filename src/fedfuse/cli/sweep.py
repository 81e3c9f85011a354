"""``fedfuse sweep``: settings of one experiment, tried one after another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedfuse.cli.console import console, print_estimate, print_facts, print_sheet, say
from fedfuse.cli.options import Assignments, Estimated, Overs
from fedfuse.cli.words import go_on_with, seeds_of
from fedfuse.experiment.finding import check_method, find_experiment

if TYPE_CHECKING:
    from fedfuse.experiment.sweep import Sweep
    from fedfuse.federation.events import Event


def sweep(
    experiment: Annotated[str, typer.Argument(metavar="FILE_OR_PRESET", help="YAML file, preset or run folder")],
    over: Overs = None,
    budget: Annotated[int | None, typer.Option(min=1, help="trials (default: every combination)")] = None,
    method: Annotated[str | None, typer.Option(metavar="NAME", help="the method (default: the file's own)")] = None,
    seeds: Annotated[str, typer.Option(help="seeds of each trial, such as 0,1 (default: the file's own)")] = "",
    sampler: Annotated[
        str | None, typer.Option(metavar="NAME", help="tpe (Optuna's, with a budget), random, or grid")
    ] = None,
    sampler_seed: Annotated[int, typer.Option(min=0, help="another one, other suggestions")] = 0,
    prune: Annotated[bool, typer.Option("--prune", help="stop runs that are worse than the median so far")] = False,
    assignments: Assignments = None,
    jobs: Annotated[int, typer.Option(min=1, help="trials at the same time, each in its own process")] = 1,
    estimate: Estimated = False,
    out: Annotated[Path | None, typer.Option(help="folder for all trials (default: runs/sweep-NAME-CHANGES)")] = None,
) -> None:
    """Try settings of an experiment and find the best. The same command goes on, with a larger budget too."""
    find_experiment(experiment)
    if method is not None:
        check_method(method, experiment)
    from fedfuse.cli.batch import batch_progress
    from fedfuse.experiment.sweep import plan_sweep

    said = [*([f"method={method}"] if method else []), *(assignments or ())]
    chosen = seeds_of(seeds) if seeds else []
    plan = plan_sweep(experiment, over or (), budget, chosen, said, {}, sampler, sampler_seed, prune, out)
    say(plan.remarks)
    if estimate:
        print_estimate(plan.estimate, jobs)
        return
    progress = batch_progress(console, jobs)
    told = Trials()

    def listener(event: Event) -> None:
        progress(event)
        told(event)

    try:
        with progress:
            plan.run(jobs, listener)
    except KeyboardInterrupt:
        raise go_on_with("the same command") from None
    finally:
        if told.sweep and told.sweep.trials:  # of what ended before a failure or Ctrl-C, too
            print_sheet(told.sweep.sheet())
            print_facts(**told.sweep.facts())


class Trials:
    """A listener that says what came of each trial; ``sweep`` is what all came to, as far as they ended."""

    def __init__(self) -> None:
        self.sweep: Sweep | None = None

    def __call__(self, event: Event) -> None:
        if event["event"] == "trial_ended":
            values = ", ".join(f"{key}={value}" for key, value in event["values"].items())
            line = f"trial {event['trial']}: {event['outcome'].in_words}; {values}"
            console.print(line, highlight=False, markup=False, soft_wrap=not console.is_terminal)
        elif event["event"] == "sweep_concluded":
            self.sweep = event["sweep"]
