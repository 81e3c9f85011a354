"""Python's own values in the place of what an experiment file says: networks, functions, arrays, tables."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any

from fedfuse.core.foreign import findable
from fedfuse.data.given import data_section
from fedfuse.experiment.config.schema import Raw
from fedfuse.models.given import model_section

MODEL = "model"
"""What a model is called that comes without a name."""


def in_words(values: Mapping[str, Any]) -> Raw:
    """The same sections, as a file could hold them, but for parts, which stay objects."""
    return {str(key): _section(str(key), value) for key, value in values.items()}


def _section(key: str, value: Any) -> Any:
    if key == "data":
        return _data(value)
    if key == "models":
        return _models(value)
    if key == "source" and isinstance(value, Mapping) and "data" in value:
        return {**value, "data": _data(value["data"])}
    return value


def _data(value: Any) -> Any:
    if isinstance(value, FunctionType):
        return {"name": "python", "path": findable(value, "data")}
    return data_section(value)


def _models(value: Any) -> Any:
    models = value if isinstance(value, Mapping) else {MODEL: value} if callable(value) else None
    if models is None:
        return value
    return {name: model_section(model, f"models.{name}") for name, model in models.items()}
