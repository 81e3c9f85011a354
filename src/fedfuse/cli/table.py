"""``fedfuse table``: a comparison for a paper, a README file, a spreadsheet or a program."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from fedfuse.cli.console import print_facts, say_aside
from fedfuse.cli.imports import quick_imports
from fedfuse.cli.show import Reference, Runs
from fedfuse.cli.words import check_free, words_of
from fedfuse.core.errors import ConfigError
from fedfuse.core.views import Format, Width
from fedfuse.experiment.finding import check_places

ENDINGS: Mapping[str, Format] = {".tex": "latex", ".md": "md", ".csv": "csv", ".json": "json", ".txt": "text"}


def table(
    runs: Runs = None,
    format: Annotated[Format | None, typer.Option("--format", help="default: by --out, else text")] = None,
    columns: Annotated[
        str, typer.Option(metavar="COLUMN,...", help="columns, separated by commas (default: those that say something)")
    ] = "",
    digits: Annotated[int | None, typer.Option(help="after the point (default: what each column needs)")] = None,
    interval: Annotated[
        Width | None, typer.Option(help="what is behind ±, as of show (default: the mean's 95 % interval)")
    ] = None,
    reference: Reference = None,
    curves: Annotated[bool, typer.Option("--curves", help="csv and json: every round of every run")] = False,
    out: Annotated[Path | None, typer.Option(help="the file to write (default: print it)")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace a file that is already there")] = False,
) -> None:
    """Print runs that are there as a table, also for papers.

    The best numbers are in bold where that can be; LaTeX needs the package booktabs. CSV has a line for each method,
    model and seed, in plain numbers.
    """
    places = runs or ["runs"]
    check_places(places)
    check_free(out, overwrite)
    chosen = _format_of(format, out)
    with quick_imports():
        from fedfuse.core.files import write_text
        from fedfuse.experiment.looking.gathering import load_runs

    comparison = load_runs(*places)
    text = comparison.table(chosen, words_of(columns), digits, interval, reference, curves)
    say_aside([*comparison.remarks, *comparison.unreadable])
    if out is None:
        sys.stdout.write(text)
        return
    write_text(out, text)
    print_facts(table=out)


def _format_of(format: Format | None, out: Path | None) -> Format:
    """What is asked for, which the name of the file may say, and may not contradict."""
    said = None if out is None else ENDINGS.get(out.suffix.lower())
    if out is not None and said is None and format is None:
        raise ConfigError(f"{out}: what shall it be? End its name with {', '.join(ENDINGS)}, or give --format")
    if said is not None and format not in (None, said):
        raise ConfigError(f"{out} would be called {said} and hold {format}; change --out or --format")
    return format or said or "text"
