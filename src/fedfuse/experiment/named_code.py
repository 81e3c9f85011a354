"""Code that an experiment file names, found without importing any of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fedfuse.core.choice import is_address
from fedfuse.core.imports import FORM
from fedfuse.experiment.config import Raw


def named_code(raw: Raw) -> str | None:
    """The first address that the file names; None if it names none, so that reading it runs nothing but fedfuse."""
    data = raw.get("data")
    if isinstance(data, Mapping) and data.get("name") == "python":
        return str(data.get("path"))
    return next(_addresses({key: value for key, value in raw.items() if key not in ("name", "data")}), None)


def _addresses(value: Any, key: Any = None) -> Iterator[str]:
    """Whatever looks like one: in a key or a value, and under ``kind`` or ``arch`` however it is written."""
    if isinstance(value, str) and (FORM.fullmatch(value) or (key in ("kind", "arch") and is_address(value))):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _addresses(name)
            yield from _addresses(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _addresses(inner)
