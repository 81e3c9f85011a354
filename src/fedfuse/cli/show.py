"""``fedfuse show``: what runs that are there came to."""

from __future__ import annotations

from typing import Annotated

import typer

from fedfuse.cli.console import print_blocks
from fedfuse.cli.imports import quick_imports
from fedfuse.core.views import Width
from fedfuse.experiment.finding import check_places

Runs = Annotated[
    list[str] | None, typer.Argument(metavar="RUN...", help="run folders, or folders that hold some (default: runs)")
]
IntervalWidth = Annotated[
    Width, typer.Option(help="what is behind ±: the mean's 95 % interval, the seeds' standard deviation, nothing")
]
Reference = Annotated[
    str | None, typer.Option(metavar="METHOD", help="what differences are from (default: fedavg, or the first)")
]


def show(
    runs: Runs = None,
    interval: IntervalWidth = "95",
    reference: Reference = None,
) -> None:
    """Show one run in full, or several side by side. Nothing is run; unfinished ones are shown as far as they are."""
    places = runs or ["runs"]
    check_places(places)
    with quick_imports():
        from fedfuse.experiment.looking.gathering import load_runs
        from fedfuse.experiment.looking.several import described

    comparison = load_runs(*places)
    print_blocks(described(comparison, interval, reference))
