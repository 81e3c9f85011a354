"""``fedfuse presets``: the experiment files inside the package."""

from __future__ import annotations

from typing import Annotated

import typer


def presets(
    name: Annotated[str | None, typer.Argument(metavar="PRESET", help="print this preset to start from")] = None,
) -> None:
    """List the experiment files inside the package, or print one."""
    from fedfuse.cli.lists import show

    show("presets", name)
