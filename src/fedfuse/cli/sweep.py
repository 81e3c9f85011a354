"""``fedfuse sweep``: settings of one experiment, tried one after another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedfuse.cli.options import Assignments, Estimated, Jobs, Opened, Overs, Port, Quiet, Verbose, Watched, Workers
from fedfuse.cli.words import check_loudness, go_on_with, report_of, seeds_of, with_assignments
from fedfuse.experiment.finding import check_keys, check_varied

if TYPE_CHECKING:
    from rich.console import Console

    from fedfuse.experiment.sweep import Sweep
    from fedfuse.federation.events import Event


def sweep(
    experiment: Annotated[str, typer.Argument(metavar="FILE_OR_PRESET", help="YAML file, preset or run folder")],
    over: Overs = None,
    budget: Annotated[int | None, typer.Option(min=1, help="trials (default: every combination)")] = None,
    method: Annotated[str | None, typer.Option(metavar="METHOD", help="the method (default: the file's own)")] = None,
    seeds: Annotated[
        str,
        typer.Option(
            "--seeds", "--seed", metavar="SEEDS", help="seeds of each trial, such as 0,1 (default: the file's own)"
        ),
    ] = "",
    sampler: Annotated[
        str | None, typer.Option(metavar="NAME", help="tpe (Optuna's, with a budget), random, or grid")
    ] = None,
    sampler_seed: Annotated[int, typer.Option(min=0, help="another one, other suggestions")] = 0,
    prune: Annotated[bool, typer.Option("--prune", help="stop runs that are worse than the median so far")] = False,
    assignments: Assignments = None,
    out: Annotated[Path | None, typer.Option(help="folder for all trials (default: runs/sweep-NAME-CHANGES)")] = None,
    estimate: Estimated = False,
    jobs: Jobs = 1,
    workers: Workers = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    watch: Watched = False,
    port: Port = None,
    open_it: Opened = False,
) -> None:
    """Try settings of an experiment and find the best. The same command goes on, with a larger budget too."""
    check_loudness(quiet, verbose)
    changes = with_assignments({"method": method, "workers": workers}, assignments or ())
    check_keys(experiment, changes)
    check_varied(experiment, over or (), changes)
    from rich.console import Console

    from fedfuse.cli.batch import batch_progress
    from fedfuse.cli.console import print_estimate, print_facts, print_sheet, say
    from fedfuse.cli.verbose import Narrator, together
    from fedfuse.cli.watch import watched
    from fedfuse.experiment.sweep import plan_sweep

    chosen = seeds_of(seeds) if seeds else []
    plan = plan_sweep(experiment, over or (), budget, chosen, changes, {}, sampler, sampler_seed, prune, out)
    if not quiet:
        say(plan.remarks)
    if estimate:
        print_estimate(plan.estimate, jobs)
        return
    screen = Console(quiet=quiet)
    progress = batch_progress(screen, jobs)
    trials = Trials(screen)
    listeners = (progress, trials, Narrator(screen)) if verbose and not quiet else (progress, trials)
    try:
        with watched([plan.folder], watch, port, open_it), progress:
            plan.run(jobs, together(*listeners))
    except KeyboardInterrupt:
        raise go_on_with("the same command") from None
    finally:
        if trials.sweep and trials.sweep.trials and not quiet:  # of what ended before a failure or Ctrl-C, too
            print_sheet(trials.sweep.sheet())
            print_facts(**trials.sweep.facts(), page=report_of(plan.folder))


class Trials:
    """A listener that says what came of each trial; ``sweep`` is what all came to, as far as they ended."""

    def __init__(self, screen: Console) -> None:
        self._screen = screen
        self.sweep: Sweep | None = None

    def __call__(self, event: Event) -> None:
        if event["event"] == "trial_ended":
            values = ", ".join(f"{key}={value}" for key, value in event["values"].items())
            line = f"trial {event['trial']}: {event['outcome'].in_words}; {values}"
            self._screen.print(line, highlight=False, markup=False, soft_wrap=not self._screen.is_terminal)
        elif event["event"] == "sweep_concluded":
            self.sweep = event["sweep"]
