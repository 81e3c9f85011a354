"""``fedfuse init``: an experiment file to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedfuse.core.errors import ConfigError


def init(
    file: Annotated[Path, typer.Argument(metavar="NEW_FILE", help="the file to write; one that is there stays")] = Path(
        "experiment.yaml"
    ),
    data: Annotated[
        str | None,
        typer.Option(metavar="DATASET_OR_FILE", help="a dataset by name, or your .csv, .parquet, .npz, image folder"),
    ] = None,
    task: Annotated[str | None, typer.Option(metavar="image|table", help="instead: an example of this kind")] = None,
    method: Annotated[str, typer.Option(metavar="METHOD", help="the method to begin with")] = "feddf",
    label_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="of your table: the labels (default: guessed by its name)")
    ] = None,
    client_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="of your table: whose each row is (default: guessed)")
    ] = None,
) -> None:
    """Write a commented experiment to start from, also for your own data. It runs as it is."""
    import re

    from fedfuse.experiment.starter import starter

    if file.suffix not in (".yaml", ".yml"):
        file = file.with_name(f"{file.name}.yaml")
    if file.exists():
        raise ConfigError(f"{file} is there already and stays as it is; choose another name")
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", file.stem).strip("-._") or "experiment"
    text = starter(name, data, method, task, label_column, client_column)
    from fedfuse.cli.console import print_facts
    from fedfuse.experiment.starter_check import check_starter

    check_starter(text)
    with file.open("x", encoding="utf-8") as new:  # not even one that came to be in the meantime is replaced
        new.write(text)
    print_facts(file=file, next=f"fedfuse run {file}")
