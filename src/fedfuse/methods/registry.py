"""Which methods there are: ours, those of installed packages, and anybody's by its address.

A package offers methods by entry points, one for each: in its ``pyproject.toml``,

    [project.entry-points."fedfuse.methods"]
    feddyn = "my_package.methods:FEDDYN"
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from fedfuse.core.choice import is_address
from fedfuse.core.errors import ConfigError, unknown
from fedfuse.core.imports import first_line, import_object
from fedfuse.methods.base import Method
from fedfuse.methods.published import METHODS

GROUP = "fedfuse.methods"


def find_method(name: str) -> Method:
    """The method of this name or address."""
    if is_address(name):
        return _checked(import_object(name, "method"), name)
    if name in METHODS:
        return METHODS[name]
    offered = installed()
    if name not in offered:
        raise ConfigError(unknown("method", name, [*METHODS, *offered]))
    return _loaded(offered[name])


def method_names() -> list[str]:
    """Names of all methods that need no address."""
    return [*METHODS, *installed()]


@cache
def installed() -> dict[str, EntryPoint]:
    """What other packages offer, by name; a name of ours stays ours."""
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in METHODS}


def origin_of(name: str) -> str:
    """Where a method comes from: nothing to say for ours, else a package or an address."""
    if name in METHODS:
        return ""
    point = installed().get(name)
    if point is None:
        return name
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value


def _loaded(point: EntryPoint) -> Method:
    try:
        found = point.load()
    except Exception as error:  # another package may raise anything while it is imported
        raise ConfigError(f"method {point.name} of {point.value} cannot be loaded: {first_line(error)}") from error
    return _checked(found, point.value)


def _checked(found: object, where: str) -> Method:
    if not isinstance(found, Method):
        raise ConfigError(f"method: {where} is no fedfuse.Method but {type(found).__name__}")
    return found
