"""Which methods there are: ours, those of installed packages, and anybody's by its address.

A package offers methods by entry points, one for each: in its ``pyproject.toml``,

    [project.entry-points."fedfuse.methods"]
    feddyn = "my_package.methods:FEDDYN"
"""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from fedfuse.core.choice import is_address
from fedfuse.core.errors import ConfigError, unknown
from fedfuse.core.imports import first_line, import_object
from fedfuse.methods.base import FILE_NAME, Method
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
    """What other packages offer, by name; a name of ours stays ours, and the first package keeps a name of its own."""
    return {point.name: point for point in reversed(_offered()) if point.name not in METHODS}


def _offered() -> list[EntryPoint]:
    """All entry points, in an order that does not depend on how they are found."""
    return sorted(entry_points(group=GROUP), key=_package)


def usable_methods() -> tuple[dict[str, Method], list[str]]:
    """All methods that need no address, and a sentence about each that another package offers in vain."""
    usable, remarks = dict(METHODS), []
    for point in _offered():
        owner = origin_of(point.name) or "fedfuse itself"
        if owner != _package(point):
            remarks.append(f"method {point.name} of {_package(point)} is left out: {owner} has one of that name")
            continue
        try:
            usable[point.name] = _loaded(point)
        except ConfigError as error:
            remarks.append(str(error))
    return usable, remarks


def origin_of(name: str) -> str:
    """Where a method comes from: nothing to say for ours, else a package or an address."""
    if name in METHODS:
        return ""
    point = installed().get(name)
    return name if point is None else _package(point)


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value


def _loaded(point: EntryPoint) -> Method:
    try:
        found = point.load()
    except (Exception, SystemExit) as error:  # another package may raise anything while it is imported
        raise ConfigError(f"method {point.name} of {_package(point)} cannot be loaded: {first_line(error)}") from error
    return _checked(found, f"{point.value} of {_package(point)}")


def _checked(found: object, where: str) -> Method:
    if not isinstance(found, Method):
        what = "a class" if isinstance(found, type) else type(found).__name__
        raise ConfigError(f"method: {where} is no fedfuse.Method but {what}")
    if found.name in METHODS and found is not METHODS[found.name]:
        raise ConfigError(f"method: {where} calls itself {found.name}, as one of ours; give it another name")
    if not re.fullmatch(FILE_NAME, found.name):
        raise ConfigError(f"method: {where} calls itself '{found.name}', but should have a name for files, as feddf-2")
    return found
