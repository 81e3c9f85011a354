"""``fedfuse compare``: methods, seeds and variants side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedfuse.cli.options import Assignments, Estimated, Jobs, Opened, Overs, Port, Quiet, Verbose, Watched, Workers
from fedfuse.cli.words import (
    check_experiments,
    check_loudness,
    go_on_with,
    report_of,
    seeds_of,
    with_assignments,
    words_of,
)
from fedfuse.experiment.finding import check_keys, check_method, check_varied


def compare(
    experiments: Annotated[list[str], typer.Argument(metavar="FILE...", help="YAML files, presets, run folders")],
    methods: Annotated[
        str,
        typer.Option(
            "--methods", "--method", metavar="METHOD,...", help="methods, separated by commas (default: the file's own)"
        ),
    ] = "",
    seeds: Annotated[
        str,
        typer.Option(
            "--seeds", "--seed", metavar="SEEDS", help="seeds, such as 0,1,2 or 0-4,7 (default: the file's own)"
        ),
    ] = "",
    assignments: Assignments = None,
    out: Annotated[Path | None, typer.Option(help="folder for all runs (default: runs/compare-NAME-CHANGES)")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace other runs that are in its folders")] = False,
    over: Overs = None,
    estimate: Estimated = False,
    jobs: Jobs = 1,
    workers: Workers = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    watch: Watched = False,
    port: Port = None,
    open_it: Opened = False,
) -> None:
    """Run methods, seeds and variants side by side. Runs that are there are kept, unfinished ones go on."""
    check_loudness(quiet, verbose)
    check_experiments(experiments)
    for experiment in experiments:
        check_keys(experiment, assignments or (), methods=False)
    if len(experiments) == 1:
        check_varied(experiments[0], over or (), assignments or (), methods=False)
    for method in words_of(methods):
        check_method(method, experiments[0])
    from rich.console import Console

    from fedfuse.cli.batch import batch_progress
    from fedfuse.cli.console import print_estimate, print_facts, print_sheet, say
    from fedfuse.cli.verbose import Narrator, together
    from fedfuse.cli.watch import watched
    from fedfuse.experiment.comparison import complete, plan, rehearse
    from fedfuse.experiment.estimate import estimate_all
    from fedfuse.experiment.looking.metric_sheets import comparison_metric_sheets
    from fedfuse.experiment.looking.tables import comparison_facts, comparison_sheet

    changes = with_assignments({"workers": workers}, assignments or ())
    chosen = words_of(methods), seeds_of(seeds) if seeds else []
    study = plan(experiments, *chosen, changes, out, over=over or ())
    screen = Console(quiet=quiet)
    if not quiet:
        say(study.remarks)
    if estimate:
        left = [cell.experiment.config for cell in study.cells if not cell.is_finished]
        if left:
            print_estimate(estimate_all, left, jobs)
        else:
            say(["every run is finished, and nothing is left to run"])
        return
    progress = batch_progress(screen, jobs)
    listener = together(progress, Narrator(screen)) if verbose and not quiet else progress
    try:
        with screen.status("checking all runs"):
            cells = rehearse(study.cells, overwrite)
        with watched([cell.folder.path for cell in cells], watch, port, open_it), progress:
            complete(cells, jobs, listener, study.folder)
    except KeyboardInterrupt:
        raise go_on_with("the same command") from None
    finally:
        if progress.comparison and not quiet:  # of what was finished before a failure or Ctrl-C, too
            for sheet in (comparison_sheet(progress.comparison), *comparison_metric_sheets(progress.comparison)):
                print_sheet(sheet)
            print_facts(**comparison_facts(progress.comparison), page=report_of(study.folder))
