"""The names that a method can have without an address: ours, and those that installed packages offer.

A package offers methods by entry points, one for each: in its ``pyproject.toml``,

    [project.entry-points."fedfuse.methods"]
    feddyn = "my_package.methods:FEDDYN"
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from fedfuse.catalogue.index import own_methods
from fedfuse.core.errors import ConfigError, unknown

GROUP = "fedfuse.methods"


def check_name(name: str) -> None:
    """Refuse what is neither a name nor an address."""
    if ":" not in name and name not in method_names():
        raise ConfigError(unknown("method", name, method_names()))


def method_names() -> list[str]:
    """Names of all methods that need no address."""
    return [*own_methods(), *installed()]


@cache
def installed() -> dict[str, EntryPoint]:
    """What other packages offer, by name; a name of ours stays ours, and the first package keeps a name of its own."""
    return {point.name: point for point in reversed(offered()) if point.name not in own_methods()}


def offered() -> list[EntryPoint]:
    """All entry points, in an order that does not depend on how they are found."""
    return sorted(entry_points(group=GROUP), key=package_of)


def package_of(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value
