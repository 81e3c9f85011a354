"""``fedfuse methods``: what methods there are, and what one is made of."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fedfuse.cli.console import console


def methods(
    name: Annotated[str | None, typer.Argument(help="show one method's recipe")] = None,
    as_yaml: Annotated[bool, typer.Option("--yaml", help="print the recipe as a method section to start from")] = False,
) -> None:
    """List the methods, or show one's parts with every parameter."""
    if name is None:
        from fedfuse.cli.lists import list_methods

        list_methods()
        return
    from fedfuse.catalogue.method_names import check_name

    check_name(name)
    import yaml

    from fedfuse.cli.parameters import parameter_table
    from fedfuse.cli.tables import method_table
    from fedfuse.methods import find_method, origin_of

    method = find_method(name)
    if as_yaml:
        recipe = {"method": {"name": name, **method.recipe.model_dump(mode="json")}}
        sys.stdout.write(yaml.safe_dump(recipe, sort_keys=False))
        return
    console.print(method_table(method, origin_of(name)))
    console.print(parameter_table(method.recipe))
