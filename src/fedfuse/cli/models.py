"""``fedfuse models``: what architectures there are, and what one can be told."""

from __future__ import annotations

from typing import Annotated

import typer


def models(
    name: Annotated[str | None, typer.Argument(metavar="ARCH", help="show one architecture's parameters")] = None,
) -> None:
    """List the architectures, or show one with its parameters."""
    from fedfuse.cli.lists import show

    show("models", name)
