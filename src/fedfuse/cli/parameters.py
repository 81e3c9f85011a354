"""Every parameter of a recipe with its value, what else it may be, and what it means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from rich.table import Table

from fedfuse.cli.tables import table
from fedfuse.core.part import Settings
from fedfuse.federation import Recipe

_BOUNDS = (("gt", "above"), ("ge", "from"), ("lt", "below"), ("le", "to"))
_NAMES = {int: "whole number", float: "number", bool: "true or false", str: "text", NoneType: "null"}


@dataclass(frozen=True)
class Parameter:
    """One key of an experiment file."""

    address: str
    value: str
    allowed: str
    meaning: str


def parameters(settings: Settings, address: str = "") -> Iterator[Parameter]:
    """All parameters at and below ``settings``, in the order in which they are declared."""
    for name, field in type(settings).model_fields.items():
        value, key = getattr(settings, name), f"{address}{name}"
        if isinstance(value, Settings):
            yield from parameters(value, f"{key}.")
        elif isinstance(value, tuple) and value and isinstance(value[0], Settings):
            for index, part in enumerate(value):
                yield from parameters(part, f"{key}[{index}].")
        else:
            yield Parameter(key, _text(value), _allowed(field), field.description or "")


def parameter_table(recipe: Recipe) -> Table:
    """Every parameter of a recipe; the addresses are keys below ``method`` in an experiment file."""
    result = table("method.", "default", "allowed", "meaning")
    for one in parameters(recipe):
        result.add_row(one.address, one.value, one.allowed, one.meaning)
    return result


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return "[]" if value == () else f"{value:g}" if isinstance(value, float) else str(value)


def _allowed(field: FieldInfo) -> str:
    bounds = [f"{word} {getattr(m, name):g}" for name, word in _BOUNDS for m in field.metadata if hasattr(m, name)]
    return " ".join([_type(field.annotation), *bounds])


def _type(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(arguments[0])
    if origin is Literal:
        return " | ".join(str(choice) for choice in arguments)
    if origin in (Union, UnionType):
        return " | ".join(_type(choice) for choice in arguments)
    if origin is tuple:
        return "list"
    if isinstance(annotation, type) and issubclass(annotation, Settings):
        kind = annotation.model_fields.get("kind")
        return f"{{kind: {kind.default}}}" if kind else "mapping"
    return _NAMES.get(annotation, str(annotation))
