"""``fedfuse models``: what architectures there are, and what one can be told."""

from __future__ import annotations

from typing import Annotated

import typer

from fedfuse.core.errors import ConfigError, unknown


def models(
    name: Annotated[str | None, typer.Argument(metavar="[ARCH]", help="show one architecture's parameters")] = None,
) -> None:
    """List the architectures, or show one's parameters."""
    from fedfuse.catalogue.details import slots
    from fedfuse.cli.columns import wrapped
    from fedfuse.cli.console import console, print_lines
    from fedfuse.cli.lists import list_models
    from fedfuse.cli.shown import part_lines
    from fedfuse.experiment import listing

    if name is None:
        list_models()
        return
    if name not in listing.list_models():
        raise ConfigError(unknown("architecture", name, listing.list_models()))
    row, size = slots()["models"], listing.list_models()[name]
    print_lines(part_lines("models", row, name, row.kinds[name], slots(), console.width))
    if size.parameters is not None:
        numbers = f"{size.parameters:,} parameters and {size.statistics or 0:,} statistics of BatchNorm"
        print_lines(
            ["", *wrapped(f"{numbers} with these defaults, for {size.inputs} and 10 classes", console.width, "  ")]
        )
