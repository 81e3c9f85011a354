"""``fedfuse presets``: the experiment files inside the package."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fedfuse.core.errors import ConfigError, unknown


def presets(name: Annotated[str | None, typer.Argument(help="print this preset to start from")] = None) -> None:
    """List the experiment files inside the package, or print one."""
    if name is None:
        from fedfuse.cli.lists import list_presets

        list_presets()
        return
    from fedfuse.experiment import presets as shipped

    if name not in shipped.names():
        raise ConfigError(unknown("preset", name, shipped.names()))
    sys.stdout.write(shipped.text(name))
