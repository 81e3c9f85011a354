"""Commands of other packages: entry points of the group ``fedfuse.commands``, found when they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedfuse.cli.commands import COMMANDS
from fedfuse.core.errors import FedfuseError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

GROUP = "fedfuse.commands"
ELSEWHERE = {"reproduce": "fedfuse-papers"}
"""Commands that have a package of their own."""


def entry_points(group: str) -> EntryPoints:
    """Those that are installed; the library that reads them is not imported for commands of ours."""
    from importlib import metadata

    return metadata.entry_points(group=group)


def names() -> list[str]:
    """What installed packages offer; a name of ours stays ours."""
    return [name for name in sorted(entry_points(group=GROUP).names) if name not in COMMANDS]


def find(name: str) -> EntryPoint | None:
    """The command of another package; one that is known to be elsewhere and not installed is refused."""
    found = next((point for point in entry_points(group=GROUP) if point.name == name), None)
    if found is None and name in ELSEWHERE:
        raise FedfuseError(f"{name} is a command of {ELSEWHERE[name]}; install it: pip install {ELSEWHERE[name]}")
    return found
