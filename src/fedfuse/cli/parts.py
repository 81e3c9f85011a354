"""``fedfuse parts``: what fills the slots of an experiment file, from merges to partitions."""

from __future__ import annotations

from typing import Annotated

import typer


def parts(
    slot: Annotated[str | None, typer.Argument(metavar="[SLOT]", help="show one slot's kinds")] = None,
    kind: Annotated[
        str | None, typer.Argument(metavar="[KIND]", help="show one kind, or a class by its address")
    ] = None,
) -> None:
    """List every slot of an experiment file with all kinds that fill it, or show one with its parameters."""
    from fedfuse.cli.columns import in_columns, wrapped
    from fedfuse.cli.console import console, print_lines
    from fedfuse.cli.lists import list_parts
    from fedfuse.cli.shown import key_lines, part_lines
    from fedfuse.experiment import listing

    if slot is None:
        list_parts()
        return
    name, row = listing.find_slot(slot)
    known = listing.list_parts()
    if kind is not None:
        print_lines(part_lines(name, row, kind, listing.find_part(name, kind), known, console.width))
        return
    print_lines(wrapped(f"{name}: {row.meaning}", console.width), "bold")
    print_lines(in_columns([("key", ", ".join(row.places))], console.width, indent="  "))
    for each, part in row.kinds.items():
        print_lines(["", *wrapped(f"{each}: {part.meaning}", console.width)])
        print_lines(key_lines(part.keys, known, console.width, indent="    "))
