"""Code that an experiment file names, found without importing any of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fedfuse.core.choice import is_address
from fedfuse.experiment.config import Raw

CHOOSERS = ("kind", "arch", "name", "callable")
"""Keys whose values may be addresses."""


def named_code(raw: Raw) -> str | None:
    """The first address that the file names; None if it names none, so that reading it runs nothing but fedfuse."""
    sections = {key: value for key, value in raw.items() if key not in ("name", "data")}
    method, data = raw.get("method"), raw.get("data")
    if is_address(method):
        return method
    if isinstance(data, Mapping) and data.get("name") == "python":
        return str(data.get("path"))
    return next(_addresses(sections), None)


def _addresses(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (chosen for key in CHOOSERS if is_address(chosen := value.get(key)))
        yield from (key for key in value if is_address(key))
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for one in inner:
        yield from _addresses(one)
