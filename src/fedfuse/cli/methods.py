"""``fedfuse methods``: what methods there are, and what one is made of."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fedfuse.catalogue.index import MethodRow


def methods(
    name: Annotated[str | None, typer.Argument(metavar="[METHOD]", help="show one method's recipe")] = None,
    as_yaml: Annotated[bool, typer.Option("--yaml", help="print the recipe as a method section to start from")] = False,
) -> None:
    """List the methods, or show one's parts with every parameter."""
    from fedfuse.cli.columns import in_columns, wrapped
    from fedfuse.cli.console import console, print_lines
    from fedfuse.cli.lists import list_methods
    from fedfuse.cli.shown import Shown, grouped
    from fedfuse.experiment.listing import describe_method

    if name is None:
        list_methods()
        return
    found = describe_method(name)
    if as_yaml:
        from fedfuse.core.yaml_text import dump_yaml

        sys.stdout.write(dump_yaml({"method": {"name": name, **found.recipe}}))
        return
    print_lines(wrapped(f"{found.row.title}: {found.row.summary}", console.width), "bold")
    print_lines(in_columns(list(_facts(found.row)), console.width, indent="  "))
    print_lines([""])
    shown = [Shown.at(address, value, key, top="method") for address, value, key in found.keys]
    print_lines(grouped(shown, found.slots, console.width))


def _facts(row: MethodRow) -> Iterator[tuple[str, str]]:
    if row.origin:
        yield "from", row.origin
    yield "citation", row.citation
    yield "exchanges", row.exchanges
    yield "server keeps", row.server_keeps
    yield "clients keep", row.client_keeps
    needs = {"no": "not needed", "yes": "needed, without labels", "labelled": "needed, with labels"}
    yield "public inputs", needs[row.public_inputs]
    yield "label counts", "shared with the server" if row.shares_labels else "not shared"
    yield "mixed architectures", "learn from each other" if row.mixes_architectures else "each on its own"
    if row.page:
        yield "page", row.page
