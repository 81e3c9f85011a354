"""The commands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import fedfuse
from fedfuse.cli import flower, generator
from fedfuse.cli.bench import bench
from fedfuse.cli.console import console, print_event, print_facts, print_sheet, say
from fedfuse.cli.entry_points import OpenGroup
from fedfuse.cli.export import export
from fedfuse.cli.fuse import fuse
from fedfuse.cli.imports import quick_imports
from fedfuse.cli.monitor import monitor
from fedfuse.cli.words import go_on_with, seeds_of, words_of
from fedfuse.core.errors import ConfigError, unknown
from fedfuse.experiment.finding import check_method, find_experiment

app = typer.Typer(
    name="fedfuse",
    cls=OpenGroup,
    help="Federated learning by distillation: fuse what many parties learnt into one model per architecture.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(generator.app, name="generator")
app.add_typer(flower.app, name="flower")

Assignments = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="change a key, e.g. federation.rounds=20")
]


@app.callback(invoke_without_command=True)
def _options(version: Annotated[bool, typer.Option("--version", help="print the version and exit")] = False) -> None:
    if version:
        console.print(f"fedfuse {fedfuse.__version__}", highlight=False)
        raise typer.Exit


@app.command()
def run(
    experiment: Annotated[str, typer.Argument(metavar="FILE_OR_PRESET", help="YAML file, preset or run folder")],
    method: Annotated[str | None, typer.Option(metavar="NAME", help="the method (default: the file's own)")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="the seed (default: the file's own)")] = None,
    assignments: Assignments = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with an interrupted run")] = False,
    out: Annotated[Path | None, typer.Option(help="run folder (default: runs/NAME-METHOD-seedN)")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace a run that is already there")] = False,
    engine: Annotated[str | None, typer.Option(metavar="KIND", help="where clients run: local or ray")] = None,
    workers: Annotated[int | None, typer.Option(min=0, help="clients at the same time, in processes")] = None,
    address: Annotated[str | None, typer.Option(help="with --engine ray: the cluster to join")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="print nothing but errors")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the run's events, a line of JSON each")] = False,
) -> None:
    """Run one experiment."""
    find_experiment(experiment)
    if method is not None and not any(assignment.startswith("method") for assignment in assignments or ()):
        check_method(method, experiment)
    with quick_imports():
        from fedfuse.cli.metric_results import metric_sheets
        from fedfuse.cli.progress import RunProgress
        from fedfuse.cli.remarks import hints, how_to_go_on
        from fedfuse.experiment.lessons import check_that_something_was_learnt
        from fedfuse.experiment.run import Experiment, run_folder
        from fedfuse.experiment.sheets import closing_facts, summary_sheet

    shortcuts = [f"{key}={value}" for key, value in (("method", method), ("seed", seed)) if value is not None]
    loaded = Experiment.load(experiment, [*shortcuts, *_engine(engine, workers, address), *(assignments or ())])
    folder = run_folder(experiment, out, resume) or loaded.default_folder
    config = loaded.config
    quiet = quiet or as_json
    if not quiet:
        say(hints([config]))
    with RunProgress(Console(quiet=quiet)) as progress:
        progress.begin(config.label, config.federation.rounds)
        try:
            result = loaded.run(folder, resume, overwrite, (print_event if as_json else progress,))
        except KeyboardInterrupt:
            raise go_on_with(how_to_go_on(config, folder)) from None
    if not quiet:
        for sheet in (summary_sheet(result.summary), *metric_sheets(result.summary)):
            print_sheet(sheet)
        print_facts(**closing_facts(loaded, result))
    check_that_something_was_learnt(result.summary)


@app.command()
def compare(
    experiments: Annotated[list[str], typer.Argument(metavar="FILE...", help="YAML files or presets")],
    methods: Annotated[str, typer.Option(help="methods, separated by commas (default: the file's own)")] = "",
    seeds: Annotated[str, typer.Option(help="seeds, separated by commas (default: the file's own)")] = "",
    assignments: Assignments = None,
    out: Annotated[Path | None, typer.Option(help="folder for all runs (default: runs/compare-NAME)")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace other runs that are in its folders")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="runs at the same time, each in its own process")] = 1,
) -> None:
    """Run methods and seeds side by side. Runs that are there are kept, unfinished ones go on."""
    for experiment in experiments:
        find_experiment(experiment)
    for method in words_of(methods):
        check_method(method, experiments[0])
    from fedfuse.cli.batch import batch_progress
    from fedfuse.cli.metric_results import comparison_metric_sheets
    from fedfuse.cli.remarks import hints
    from fedfuse.experiment.comparison import complete, plan, rehearse
    from fedfuse.experiment.sheets import comparison_facts, comparison_sheet

    study = plan(experiments, words_of(methods), seeds_of(seeds) if seeds else [], assignments or (), out)
    say([*study.remarks, *hints([cell.experiment.config for cell in study.cells])])
    progress = batch_progress(console, jobs)
    try:
        with console.status("checking all runs"):
            cells = rehearse(study.cells, overwrite)
        with progress:
            complete(cells, jobs, progress)
    except KeyboardInterrupt:
        raise go_on_with("the same command") from None
    finally:
        if progress.comparison:  # of what was finished before a failure or Ctrl-C, too
            for sheet in (comparison_sheet(progress.comparison), *comparison_metric_sheets(progress.comparison)):
                print_sheet(sheet)
            print_facts(**comparison_facts(progress.comparison))


@app.command()
def methods(
    name: Annotated[str | None, typer.Argument(help="show one method's recipe")] = None,
    as_yaml: Annotated[bool, typer.Option("--yaml", help="print the recipe as a method section to start from")] = False,
) -> None:
    """List the methods, or show one's parts with every parameter."""
    if name is None:
        _list("methods")
        return
    from fedfuse.catalogue.method_names import check_name

    check_name(name)
    import yaml

    from fedfuse.cli.parameters import parameter_table
    from fedfuse.cli.tables import method_table
    from fedfuse.methods import find_method, origin_of

    method = find_method(name)
    if as_yaml:
        recipe = {"method": {"name": name, **method.recipe.model_dump(mode="json")}}
        sys.stdout.write(yaml.safe_dump(recipe, sort_keys=False))
        return
    console.print(method_table(method, origin_of(name)))
    console.print(parameter_table(method.recipe))


@app.command()
def datasets(name: Annotated[str | None, typer.Argument(help="show this dataset's card")] = None) -> None:
    """List the datasets known by name, or show one's card: what it is, where it is looked for, how to get it."""
    if name is None:
        _list("datasets")
        return
    from fedfuse.catalogue.datasets import CATALOGUE
    from fedfuse.cli.tables import dataset_table

    if name not in CATALOGUE:
        raise ConfigError(unknown("dataset", name, CATALOGUE))
    console.print(dataset_table(name, CATALOGUE[name]))


@app.command()
def models() -> None:
    """List the architectures."""
    _list("models")


app.command()(fuse)
app.command()(export)
app.command()(bench)
app.command()(monitor)


@app.command()
def presets(name: Annotated[str | None, typer.Argument(help="print this preset to start from")] = None) -> None:
    """List the experiment files inside the package, or print one."""
    if name is None:
        _list("presets")
        return
    from fedfuse.experiment import presets as shipped

    if name not in shipped.names():
        raise ConfigError(unknown("preset", name, shipped.names()))
    sys.stdout.write(shipped.text(name))


@app.command()
def schema() -> None:
    """Print the JSON schema of an experiment file."""
    from fedfuse.core.plain_json import dumps
    from fedfuse.experiment.config import json_schema

    sys.stdout.write(dumps(json_schema(), indent=2) + "\n")


def _engine(kind: str | None, workers: int | None, address: str | None) -> list[str]:
    """The options about the engine as assignments."""
    whole = [f"engine={{kind: {kind}}}"] if kind else []
    keys = {"workers": workers, "address": address}
    return whole + [f"engine.{key}={value}" for key, value in keys.items() if value is not None]


def _list(what: str) -> None:
    from fedfuse.cli.lists import LISTS

    LISTS[what]()
