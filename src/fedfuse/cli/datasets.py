"""``fedfuse datasets``: what data is known by name, and where it is looked for."""

from __future__ import annotations

from typing import Annotated

import typer

from fedfuse.cli.console import console
from fedfuse.core.errors import ConfigError, unknown


def datasets(name: Annotated[str | None, typer.Argument(help="show this dataset's card")] = None) -> None:
    """List the datasets known by name, or show one's card: what it is, where it is looked for, how to get it."""
    if name is None:
        from fedfuse.cli.lists import list_datasets

        list_datasets()
        return
    from fedfuse.catalogue.datasets import CATALOGUE
    from fedfuse.cli.tables import dataset_table

    if name not in CATALOGUE:
        raise ConfigError(unknown("dataset", name, CATALOGUE))
    console.print(dataset_table(name, CATALOGUE[name]))
