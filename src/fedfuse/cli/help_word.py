"""``fedfuse help``: what has to do with a word."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fedfuse.cli.commands import COMMANDS
from fedfuse.core.errors import ConfigError, shortened, suggest

MOST = 10
"""So many matches fit on a screen."""


def help_word(
    words: Annotated[list[str] | None, typer.Argument(metavar="WORD", help="a command, or any word")] = None,
) -> None:
    """Say what has to do with a word: a command, a method, a part, a key, or a term of the field."""
    from fedfuse.cli.app import app
    from fedfuse.cli.group import load

    asked = words or []
    if not asked or load(asked[0]) is not None:
        app(args=[*asked, "--help"], prog_name="fedfuse", standalone_mode=False)
        return
    from fedfuse.cli.columns import wrapped
    from fedfuse.cli.console import console, print_lines
    from fedfuse.experiment.searching import everything, search

    found = search(*asked)
    if not found:
        names = {word for match in everything() for word in match.name.replace(".", " ").split()} | set(COMMANDS)
        near = suggest(asked[0], names, listed=False)
        raise ConfigError(f"nothing here has to do with '{shortened(' '.join(asked))}'{near}")
    for match in found[:MOST]:
        print_lines([match.command or match.name], "bold")
        print_lines(wrapped(match.text, console.width, "    "))
    if len(found) > MOST:
        sys.stdout.write(f"and {len(found) - MOST} more; another word narrows it down\n")
