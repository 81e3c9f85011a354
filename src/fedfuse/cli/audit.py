"""``fedfuse audit``: what can be found out from what left the parties of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedfuse.cli.imports import quick_imports
from fedfuse.experiment.finding import check_places


def audit(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="run folder")],
    shadows: Annotated[int, typer.Option(min=0, help="federations trained for LiRA, each as long as the run")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="print all findings, of every client, as JSON")] = False,
) -> None:
    """Attack what left the parties of a finished run: whose examples were in the training data?"""
    check_places([str(run)])
    from fedfuse.cli.console import console, print_lines, print_sheet, say
    from fedfuse.core.plain_json import dumps

    with quick_imports():
        from fedfuse.experiment.auditing import audit as audited

    with console.status("playing the last round again") as status:
        found = audited(run, shadows, lambda done, of: status.update(f"training shadow {done + 1} of {of}"))
    if as_json:
        print_lines([dumps(found.as_json())])
        return
    print_sheet(found.sheet())
    say(found.notes)
