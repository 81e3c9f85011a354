"""``fedfuse run``: one experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedfuse.cli.imports import quick_imports
from fedfuse.cli.options import Assignments, Estimated, Opened, Port, Quiet, Verbose, Watched, Workers
from fedfuse.cli.words import check_loudness, go_on_with, with_assignments
from fedfuse.experiment.finding import check_keys


def run(
    experiment: Annotated[str, typer.Argument(metavar="FILE_OR_PRESET", help="YAML file, preset or run folder")],
    method: Annotated[str | None, typer.Option(metavar="METHOD", help="the method (default: the file's own)")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="the seed (default: the file's own)")] = None,
    assignments: Assignments = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with an interrupted run")] = False,
    out: Annotated[Path | None, typer.Option(help="run folder (default: runs/NAME-CHANGES-METHOD-seedN)")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace a run that is already there")] = False,
    engine: Annotated[str | None, typer.Option(metavar="ENGINE", help="where clients run: local or ray")] = None,
    workers: Workers = None,
    address: Annotated[str | None, typer.Option(help="with --engine ray: the cluster to join")] = None,
    estimate: Estimated = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    watch: Watched = False,
    port: Port = None,
    open_it: Opened = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the run's events, a line of JSON each")] = False,
) -> None:
    """Run one experiment."""
    check_loudness(quiet, verbose, as_json)
    options = {"engine": engine or None, "method": method, "seed": seed, "workers": workers, "address": address}
    changes = with_assignments(options, assignments or ())
    check_keys(experiment, changes)
    with quick_imports():
        from rich.console import Console

        from fedfuse.cli.console import print_estimate, print_event, print_facts, print_sheet, say
        from fedfuse.cli.progress import RunProgress
        from fedfuse.cli.remarks import how_to_go_on, nothing_to_resume
        from fedfuse.cli.verbose import Narrator
        from fedfuse.cli.watch import watched
        from fedfuse.experiment.estimate import estimate_of
        from fedfuse.experiment.lessons import check_that_something_was_learnt
        from fedfuse.experiment.looking.metric_sheets import metric_sheets
        from fedfuse.experiment.run import Experiment, run_folder
        from fedfuse.experiment.sheets import closing_facts, summary_sheet

    loaded = Experiment.load(experiment, changes)
    if estimate:
        print_estimate(estimate_of, loaded.config)
        return
    folder = run_folder(experiment, out, resume, overwrite) or loaded.default_folder
    config = loaded.config
    quiet = quiet or as_json
    if resume and not overwrite and not quiet:
        say(nothing_to_resume(config, folder))
    screen = Console(quiet=quiet)
    told = (Narrator(screen),) if verbose and not quiet else ()
    with watched([folder], watch, port, open_it), RunProgress(screen) as progress:
        early = config.evaluation.stop_at_target or config.evaluation.patience is not None
        progress.begin(config.label, config.federation.rounds, at_most=early)
        try:
            result = loaded.run(folder, resume, overwrite, (print_event if as_json else progress, *told))
        except KeyboardInterrupt:
            raise go_on_with(how_to_go_on(config, folder)) from None
    if not quiet:
        for sheet in (summary_sheet(result.summary), *metric_sheets(result.summary)):
            print_sheet(sheet)
        print_facts(**closing_facts(loaded, result))
    check_that_something_was_learnt(result.summary)
