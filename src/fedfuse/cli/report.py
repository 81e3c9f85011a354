"""``fedfuse report``: runs that are there on one page of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedfuse.cli.console import print_facts, say_aside
from fedfuse.cli.imports import quick_imports
from fedfuse.cli.show import Reference, Runs
from fedfuse.cli.words import check_free
from fedfuse.experiment.finding import check_places


def report(
    runs: Runs = None,
    out: Annotated[Path, typer.Option(help="the file to write")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="of the page (default: experiment and data)")] = None,
    reference: Reference = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace a file that is already there")] = False,
) -> None:
    """Write a page about runs that are there, which opens offline.

    Tables with intervals and paired differences, accuracy over rounds, bytes and seconds, which method is ahead within
    a budget, classes, partition, missing clients, what differs between the configs, and the commands.
    """
    places = runs or ["runs"]
    check_places(places)
    check_free(out, overwrite)
    with quick_imports():
        from fedfuse.experiment.looking.gathering import load_runs

    comparison = load_runs(*places)
    comparison.report(out, title=title, reference=reference)
    say_aside([*comparison.remarks, *comparison.unreadable])
    print_facts(report=out)
