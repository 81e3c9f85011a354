"""``fedfuse keys``: every key of an experiment file, with what it is unless said."""

from __future__ import annotations

from typing import Annotated

import typer


def keys(
    word: Annotated[
        str | None, typer.Argument(metavar="KEY", help="a section, a key, or a part of its name: training, alpha")
    ] = None,
) -> None:
    """List every key of an experiment file with default and meaning."""
    from fedfuse.cli.lists import show

    show("keys", word)
