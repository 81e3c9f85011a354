"""The command line as Typer reads it: the commands that are registered in ``commands.py``."""

from __future__ import annotations

import typer

from fedfuse.cli.group import Commands

app = typer.Typer(
    name="fedfuse",
    cls=Commands,
    help="Federated learning by distillation: fuse what many parties learnt into one model per architecture.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _no_options() -> None:
    """``--version`` and ``--traceback`` are obeyed before Typer reads anything (``command_line.py``)."""
