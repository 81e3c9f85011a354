"""The command line as Typer reads it: the commands that are registered in ``commands.py``, and its own options."""

from __future__ import annotations

from typing import Annotated

import typer

import fedfuse
from fedfuse.cli.console import console
from fedfuse.cli.group import Commands

app = typer.Typer(
    name="fedfuse",
    cls=Commands,
    help="Federated learning by distillation: fuse what many parties learnt into one model per architecture.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def _options(version: Annotated[bool, typer.Option("--version", help="print the version and exit")] = False) -> None:
    if version:
        console.print(f"fedfuse {fedfuse.__version__}", highlight=False)
        raise typer.Exit
