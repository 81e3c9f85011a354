"""The methods and architectures of this package, as ``make index`` wrote them from the code into ``index.json``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class MethodRow:
    """One method of ``fedfuse methods``."""

    title: str
    family: str
    brief: str
    """The summary in a few words."""
    summary: str
    citation: str
    exchanges: str
    server_keeps: str
    client_keeps: str
    public_inputs: str
    """Yes, no, or labelled."""
    shares_labels: bool
    mixes_architectures: bool
    origin: str = ""
    """Whose it is, if not ours."""
    page: str = ""
    """Where the documentation says more."""


@dataclass(frozen=True)
class ModelRow:
    """An architecture; its sizes are for 10 classes and its defaults, None where it has none."""

    description: str
    parameters: int | None
    statistics: int | None
    """Of BatchNorm, which travel too."""
    inputs: str = "3x32x32 inputs"
    """What the sizes are for."""


def own_methods() -> dict[str, MethodRow]:
    """Our methods by name, in the order in which they are listed."""
    return {name: MethodRow(**row) for name, row in _index()["methods"].items()}


def models() -> dict[str, ModelRow]:
    """All architectures by name."""
    return {name: ModelRow(**row) for name, row in _index()["models"].items()}


@cache
def _index() -> dict[str, dict[str, dict[str, Any]]]:
    return json.loads((files(__package__) / "index.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]
