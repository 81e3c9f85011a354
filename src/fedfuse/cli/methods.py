"""``fedfuse methods``: what methods there are, and what one is made of."""

from __future__ import annotations

from typing import Annotated

import typer


def methods(
    name: Annotated[str | None, typer.Argument(metavar="METHOD", help="show one method's recipe")] = None,
    as_yaml: Annotated[bool, typer.Option("--yaml", help="print the recipe as a method section to start from")] = False,
) -> None:
    """List the methods, or show one's parts with every parameter."""
    from fedfuse.cli.lists import show

    if name is not None and as_yaml:
        from fedfuse.cli.named import show_method

        show_method(name, as_yaml)
        return
    show("methods", name)
