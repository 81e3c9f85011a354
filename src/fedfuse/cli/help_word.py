"""``fedfuse help``: what has to do with a word."""

from __future__ import annotations

from typing import Annotated

import typer


def help_word(
    words: Annotated[list[str] | None, typer.Argument(metavar="WORD", help="a command, or any word")] = None,
) -> None:
    """Say what has to do with a word: a method, a part, a key, a term. With a command, what ``-h`` says."""
    from fedfuse.cli.app import app
    from fedfuse.cli.group import load
    from fedfuse.cli.named import explain

    if words and load(words[0]) is None:
        explain(*words)
    else:
        app(args=[*(words or ()), "--help"], prog_name="fedfuse", standalone_mode=False)
