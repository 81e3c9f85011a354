"""Validation errors in plain words: the key, its value, what would be right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedfuse.core.errors import suggest


def sentence(error: Mapping[str, Any], raw: Any) -> str:
    """One pydantic error in plain words: the key, its value, what would be right."""
    address = ".".join(_address(error, raw))
    at = f"{address}: " if address else ""
    context = error.get("ctx", {})
    if error["type"] == "missing":
        return f"{address} is missing"
    if error["type"] == "value_error":
        return f"{at}{context['error']}"
    if error["type"] == "union_tag_invalid":
        known = [tag.strip().strip("'") for tag in str(context["expected_tags"]).split(",")]
        return f"{at}unknown {context['discriminator'].strip(chr(39))} '{context['tag']}'{suggest(context['tag'], known)}"
    if error["type"] == "union_tag_not_found":
        return f"{at}{context['discriminator']} is missing".replace("'", "")
    if error["type"] == "literal_error":
        return f"{address} is {error['input']!r}, but should be {context['expected']}"
    problem = error["msg"].removeprefix("Input ").replace("should be a valid", "should be a")
    return f"{address} is {_short(error['input'])}, but {problem}"


def _address(error: Mapping[str, Any], raw: Any) -> list[str]:
    """The error's location in the user's own words: without the union tags that pydantic puts between keys."""
    address, node, location = [], raw, error["loc"]
    for index, step in enumerate(location):
        last = index == len(location) - 1
        if isinstance(node, Mapping) and step in node:
            node = node[step]
        elif isinstance(node, Sequence) and isinstance(step, int) and step < len(node):
            node = node[step]
        elif not (last and error["type"] == "missing"):
            continue
        address.append(str(step))
    return address


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
