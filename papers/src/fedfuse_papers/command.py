"""The command ``fedfuse reproduce``. Nothing heavy is imported above it: ``fedfuse --help`` reads this file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def reproduce(
    entry: Annotated[str | None, typer.Argument(metavar="ENTRY", help="a table or figure, e.g. feddf/table2")] = None,
    scale: Annotated[str, typer.Option(help="smoke: it runs; small: an hour or so; paper: as printed")] = "smoke",
    cells: Annotated[
        list[str] | None, typer.Option(metavar="AXIS=LABEL,...", help="only these cells, e.g. method=FedAvg,FedDF")
    ] = None,
    seeds: Annotated[
        str, typer.Option(metavar="SEEDS", help="seeds, separated by commas (default: as many as the scale has)")
    ] = "",
    jobs: Annotated[
        int,
        typer.Option("--jobs", "--workers", min=1, help="runs at the same time, each in its own process; same bits"),
    ] = 1,
    show: Annotated[bool, typer.Option("--show", help="print the last result and run nothing")] = False,
    out: Annotated[Path, typer.Option(help="folder for all results")] = Path("reproduction"),
    pages: Annotated[Path | None, typer.Option(help="write all results so far as pages to this folder")] = None,
) -> None:
    """List the papers' tables and figures, or run one and put its numbers beside the printed ones."""
    from fedfuse.plugins import go_on_with, print_facts, seeds_of
    from fedfuse_papers.listing import list_entries
    from fedfuse_papers.pages import write_pages
    from fedfuse_papers.request import Request
    from fedfuse_papers.store import Store

    store = Store(out)
    if pages is not None:
        print_facts(pages=f"{len(write_pages(store, pages))} in {pages}")
        return
    if entry is None:
        list_entries(store)
        return
    request = Request.of(entry, scale, cells or (), seeds_of(seeds) if seeds else None, store)
    if not show:
        try:
            request.run(jobs)
        except KeyboardInterrupt:
            raise go_on_with("the same command") from None
    request.report()
