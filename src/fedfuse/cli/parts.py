"""``fedfuse parts``: what fills the slots of an experiment file, from merges to partitions."""

from __future__ import annotations

from typing import Annotated

import typer


def parts(
    slot: Annotated[str | None, typer.Argument(metavar="SLOT", help="show one slot's kinds")] = None,
    kind: Annotated[str | None, typer.Argument(metavar="KIND", help="show one kind, or a class by its address")] = None,
) -> None:
    """List the parts that fill the slots of an experiment, or show one."""
    from fedfuse.cli.lists import show

    show("parts", slot, kind)
