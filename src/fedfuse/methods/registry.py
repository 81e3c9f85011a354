"""The methods behind their names: ours, those of installed packages, and anybody's by its address."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint

from fedfuse.catalogue.method_names import check_name, installed, offered, package_of
from fedfuse.core.choice import is_address
from fedfuse.core.errors import ConfigError
from fedfuse.core.imports import first_line, import_object
from fedfuse.methods.base import FILE_NAME, Method
from fedfuse.methods.published import METHODS


def find_method(name: str) -> Method:
    """The method of this name or address."""
    if is_address(name):
        return _checked(import_object(name, "method"), name)
    if name in METHODS:
        return METHODS[name]
    check_name(name)
    return _loaded(installed()[name])


def usable_methods() -> tuple[dict[str, Method], list[str]]:
    """All methods that need no address, and a sentence about each that another package offers in vain."""
    usable, remarks = dict(METHODS), []
    for point in offered():
        owner = origin_of(point.name) or "fedfuse itself"
        if owner != package_of(point):
            remarks.append(f"method {point.name} of {package_of(point)} is left out: {owner} has one of that name")
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
    return name if point is None else package_of(point)


def _loaded(point: EntryPoint) -> Method:
    try:
        found = point.load()
    except (Exception, SystemExit) as error:  # another package may raise anything while it is imported
        raise ConfigError(
            f"method {point.name} of {package_of(point)} cannot be loaded: {first_line(error)}"
        ) from error
    return _checked(found, f"{point.value} of {package_of(point)}")


def _checked(found: object, where: str) -> Method:
    if not isinstance(found, Method):
        what = "a class" if isinstance(found, type) else type(found).__name__
        raise ConfigError(f"method: {where} is no fedfuse.Method but {what}")
    if found.name in METHODS and found is not METHODS[found.name]:
        raise ConfigError(f"method: {where} calls itself {found.name}, as one of ours; give it another name")
    if not re.fullmatch(FILE_NAME, found.name):
        raise ConfigError(f"method: {where} calls itself '{found.name}', but should have a name for files, as feddf-2")
    return found
