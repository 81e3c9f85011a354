"""``fedfuse datasets``: what data is known by name, and where it is looked for."""

from __future__ import annotations

from typing import Annotated

import typer


def datasets(
    name: Annotated[str | None, typer.Argument(metavar="DATASET", help="show this dataset's card")] = None,
) -> None:
    """List the datasets known by name, or show how to get one."""
    from fedfuse.cli.lists import show

    show("datasets", name)
