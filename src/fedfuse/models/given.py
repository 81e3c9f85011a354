"""Networks that Python hands over: functions and classes by the address at which another process finds them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from torch import nn

from fedfuse.core.errors import ConfigError
from fedfuse.core.foreign import findable
from fedfuse.core.part import Settings
from fedfuse.core.randomness import Key


def model_section(value: Any, key: str) -> Any:
    """What an experiment file says in its place: ``arch: own``; anything that is no network is returned as it is."""
    if isinstance(value, nn.Module):
        return _own(_class_of(value, key), key)
    return _own(value, key) if callable(value) and not isinstance(value, Settings) else value


def _own(function: Callable[..., Any], key: str) -> dict[str, str]:
    return {"arch": "own", "callable": findable(function, key)}


def _class_of(network: nn.Module, key: str) -> type[nn.Module]:
    """The class of a network that nothing was said to when it was made, so that any process can make its like."""
    kind = type(network)
    if not _is_like(network, kind):
        raise ConfigError(
            f"{key} is a {kind.__name__} that only this process has, made with arguments of its own; give a function "
            "without arguments that makes it, or its class"
        )
    warnings.warn(
        f"{key}: every run makes a {kind.__name__} of its own, and the seed decides its first weights; those of this "
        "one are not used",
        stacklevel=2,
    )
    return kind


def _is_like(network: nn.Module, kind: type[nn.Module]) -> bool:
    """Whether a new one, made without arguments, has the same layers, shapes and settings."""
    try:
        with Key(0).default_generator():
            other = kind()
    except Exception:  # somebody else's code, which may want arguments
        return False
    return _shape(other) == _shape(network)


def _shape(network: nn.Module) -> tuple[Any, ...]:
    shapes = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    settings = {name: value for name, value in vars(network).items() if not name.startswith("_") and name != "training"}
    return repr(network), shapes, repr(settings)
