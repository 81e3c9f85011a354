"""Networks that do not fit into the memory, refused before they are built."""

from __future__ import annotations

from collections.abc import Mapping

from fedfuse.core.errors import ConfigError
from fedfuse.core.memory import free_memory, in_gigabytes
from fedfuse.models import Architecture, Encoder, layout_of

BYTES = 4
"""Of a weight."""


def check_room(models: Mapping[str, Architecture], input_shape: tuple[int, ...], classes: int) -> None:
    """Every model's weights fit once; for networks of the user's own and pre-trained ones, who knows."""
    free = free_memory()
    for name, architecture in models.items():
        if free is None or architecture.own_code or isinstance(architecture, Encoder):
            continue
        size = BYTES * _numbers(name, architecture, input_shape, classes)
        if size > free:
            raise ConfigError(
                f"models.{name} needs {in_gigabytes(size)} of memory for its weights alone, but only "
                f"{in_gigabytes(free)} are free; make it smaller"
            )


def _numbers(name: str, architecture: Architecture, input_shape: tuple[int, ...], classes: int) -> int:
    try:
        return layout_of(architecture, input_shape, classes).size
    except (RuntimeError, TypeError, OverflowError) as error:  # more than torch can count
        raise ConfigError(f"models.{name} is larger than any machine's memory; make it smaller") from error
