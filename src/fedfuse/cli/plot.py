"""``fedfuse plot``: a picture of runs that are there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedfuse.cli.console import print_facts, say_aside
from fedfuse.cli.imports import quick_imports
from fedfuse.cli.show import Runs
from fedfuse.cli.words import check_free
from fedfuse.core.views import Band, Picture, Spent
from fedfuse.experiment.finding import check_places


def plot(
    runs: Runs = None,
    out: Annotated[Path, typer.Option(help="the file to write: .png, .svg or .pdf")] = Path("plot.png"),
    x: Annotated[Spent, typer.Option("--x", help="what was spent")] = "rounds",
    y: Annotated[
        str, typer.Option("--y", metavar="MEASURE", help="accuracy, loss, before_fusion, ensemble or a metric's name")
    ] = "accuracy",
    band: Annotated[
        Band, typer.Option(help="shaded: lowest to highest seed, 95 % interval, standard deviation, nothing")
    ] = "range",
    title: Annotated[str | None, typer.Option(help="above the picture (default: experiment, data, measure)")] = None,
    size: Annotated[
        str | None, typer.Option(metavar="wide|page|column|WxH", help="for a screen or a paper, or inches: 3.4x2.5")
    ] = None,
    picture: Annotated[Picture, typer.Option(help="the last two are of a single run")] = "curves",
    model: Annotated[str | None, typer.Option(metavar="NAME", help="only this model")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace a file that is already there")] = False,
) -> None:
    """Draw runs that are there: curves over rounds, bytes or seconds.

    Or who had which examples (partition), or what a model takes each class for (confusion).
    """
    places = runs or ["runs"]
    check_places(places)
    check_free(out, overwrite)
    with quick_imports():
        from fedfuse.experiment.looking.gathering import load_runs

    comparison = load_runs(*places)
    comparison.plot(out, x=x, y=y, band=band, title=title, size=size, picture=picture, model=model)
    say_aside([*comparison.remarks, *comparison.unreadable])
    print_facts(picture=out)
