"""Commands of other packages: entry points of the group ``fedfuse.commands``, found when they are asked for."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from fedfuse.cli.commands import COMMANDS
from fedfuse.core.errors import FedfuseError

GROUP = "fedfuse.commands"
ELSEWHERE = {"reproduce": "fedfuse-papers"}
"""Commands that have a package of their own."""


def names() -> list[str]:
    """What installed packages offer; a name of ours stays ours."""
    return [name for name in sorted(entry_points(group=GROUP).names) if name not in COMMANDS]


def find(name: str) -> EntryPoint | None:
    """The command of another package; one that is known to be elsewhere and not installed is refused."""
    found = entry_points(group=GROUP, name=name)
    if not found and name in ELSEWHERE:
        raise FedfuseError(f"{name} is a command of {ELSEWHERE[name]}; install it: pip install {ELSEWHERE[name]}")
    return next(iter(found), None)
