"""What the file of a model says about it, beside its weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, PlainSerializer, PlainValidator, model_validator

from fedfuse.core.part import Settings
from fedfuse.core.text import TextShape
from fedfuse.models import AnyArchitecture
from fedfuse.models.interface import Interface

FORMAT = 3
"""Format 1 has no number, no interface, and calls the weights of a network of one's own otherwise than it does.

Format 3 knows tables with categories and empty cells, and labels that are truth values or numbers from 1; other models
are written as format 2, which is all that they need.
"""


def _shape(value: Any) -> tuple[int, ...]:
    sizes = TextShape(**value) if isinstance(value, Mapping) else value
    if (
        not isinstance(sizes, list | tuple)
        or not sizes
        or not all(isinstance(size, int) and size > 0 for size in sizes)
    ):
        raise ValueError(f"{value} is not the shape of an input")
    return sizes if isinstance(sizes, TextShape) else tuple(sizes)


def _plain(shape: tuple[int, ...]) -> Any:
    return shape._asdict() if isinstance(shape, TextShape) else shape


InputShape = Annotated[tuple[int, ...], PlainValidator(_shape), PlainSerializer(_plain)]


class ModelCard(Settings):
    """How to build the network again, and how to use it."""

    format: int = Field(1, ge=1, le=FORMAT)
    architecture: AnyArchitecture
    input_shape: InputShape
    classes: int = Field(ge=1)
    interface: Interface | None = None
    own_names: bool = Field(False, description="whether a network of one's own has its own names in the file")

    @model_validator(mode="after")
    def _interface_fits(self) -> ModelCard:
        if self.interface is not None:
            self.interface.inputs.check(self.input_shape)
            named = len(self.interface.class_names)
            if named != self.classes:
                raise ValueError(f"{named} classes are named, but there are {self.classes}")
        return self
