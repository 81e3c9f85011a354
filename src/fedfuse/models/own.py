"""A network of one's own: a function that an experiment file names, called with what the data demand."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field, JsonValue
from torch import nn

from fedfuse.core.errors import ConfigError
from fedfuse.core.imports import Address, first_line, import_function, working_folder_importable
from fedfuse.models.adapt import adapt
from fedfuse.models.architecture import Architecture
from fedfuse.models.classifier import Classifier

CLASSES_NAMES = ("classes", "num_classes", "num_labels")
"""What functions call the number of classes."""


class Own(Architecture):
    """Whatever ``callable`` returns, cut into features and classifier.

    The function is called by keyword: with ``input_shape`` and with the number of classes (as ``classes``,
    ``num_classes`` or ``num_labels``) if its signature names them, and with ``arguments``, which win. Its randomness
    must be torch's default generator, so that the experiment's seed decides the initial weights.
    """

    arch: Literal["own"] = "own"
    callable: Address = Field(description="package.module:function, importable from the working folder or installed")
    arguments: dict[str, JsonValue] = Field(default_factory=dict, description="further keyword arguments")

    @property
    def own_code(self) -> tuple[str, ...]:
        return (*super().own_code, self.callable)

    def build(self, input_shape: tuple[int, ...], classes: int) -> Classifier:
        name = f"own model '{self.callable}'"
        with working_folder_importable():
            network = self._call(name, input_shape, classes)
        if not isinstance(network, nn.Module):
            raise ConfigError(
                f"{name} returned a value of type {type(network).__name__}, but should return a torch.nn.Module"
            )
        return adapt(network, input_shape, classes, name)

    def _call(self, name: str, input_shape: tuple[int, ...], classes: int) -> Any:
        function = import_function(self.callable, name)
        if isinstance(function, nn.Module):
            raise ConfigError(f"{name} is a network already made; name its class, or a function that makes one")
        offers = {"input_shape": input_shape, **dict.fromkeys(CLASSES_NAMES, classes)}
        wanted = {key: value for key, value in offers.items() if key in _parameters(function)}
        try:
            return function(**{**wanted, **self.arguments})
        except Exception as error:
            raise ConfigError(f"{name} failed: {first_line(error)}") from error


def _parameters(function: Callable[..., Any]) -> frozenset[str]:
    try:
        return frozenset(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # something that cannot be called, or is not written in Python
        return frozenset()
