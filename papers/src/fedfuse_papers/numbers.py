"""The numbers that the papers print (papers.yaml), found by the labels of a cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import yaml

from fedfuse import ConfigError


@dataclass(frozen=True)
class Printed:
    """A mean and its deviation over seeds, as a paper prints them; accuracies are in percent."""

    value: float
    std: float | None


@lru_cache
def rows() -> tuple[Mapping[str, Any], ...]:
    """All printed numbers with the settings they belong to."""
    text = (files(__package__) / "papers.yaml").read_text(encoding="utf-8")
    return tuple(yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def matching(paper: str, query: Mapping[str, str], labels: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """Rows that have every key of the query, and whose values agree with the labels wherever they have that key."""
    return [
        row
        for row in rows()
        if row["paper"] == paper
        and all(key in row and is_same(row[key], wanted) for key, wanted in query.items())
        and all(is_same(row[axis], label) for axis, label in labels.items() if axis in row)
    ]


def printed(paper: str, query: Mapping[str, str], labels: Mapping[str, str]) -> Printed | None:
    """The number printed for a cell, if there is one; axes that the paper does not have do not count."""
    found = matching(paper, query, labels)
    if len(found) > 1:
        raise ConfigError(f"{len(found)} printed numbers of {paper} fit {dict(query)}, {dict(labels)}; say which")
    if not found or found[0]["value"] is None:
        return None
    return Printed(found[0]["value"], found[0]["std"])


def is_same(value: Any, label: str) -> bool:
    """Equal as numbers, or word for word."""
    try:
        return float(value) == float(label)
    except (TypeError, ValueError):
        return str(value) == label
