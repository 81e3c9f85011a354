"""The parameters of an architecture, and the step from them to a freshly initialised model."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar

from pydantic import Field

from fedfuse.core.errors import ConfigError
from fedfuse.core.part import Part
from fedfuse.core.randomness import Key
from fedfuse.core.text import TextShape
from fedfuse.models.classifier import Classifier, ProjectedClassifier

Count = Annotated[int, Field(ge=1)]


class Architecture(Part):
    """The shape of a network, named by ``arch``; inputs and classes come from the data."""

    chooser: ClassVar[str] = "arch"
    arch: str
    projection_head: int | None = Field(
        None, ge=1, description="size of a projection head between features and classifier, as MOON and FedGKD+ use"
    )

    @property
    def taught_on(self) -> str | None:
        """The folder or hub name of the tokenizer whose numbers it was pre-trained on, if it was on texts."""
        return None

    @abstractmethod
    def build(self, input_shape: tuple[int, ...], classes: int) -> Classifier:
        """A model for one example's shape, initialised from torch's default generator.

        Raises ConfigError if this architecture cannot take such inputs.
        """


def create(architecture: Architecture, input_shape: tuple[int, ...], classes: int, key: Key) -> Classifier:
    """A model whose initial weights depend on ``key`` alone; torch's own generator is left as it was."""
    if classes < 1:
        raise ConfigError(f"{architecture.arch} needs at least 1 class, not {classes}")
    with key.default_generator():
        model = architecture.build(input_shape, classes)
        if architecture.projection_head is None:
            return model
        return ProjectedClassifier(model, architecture.projection_head, classes)


def require_text(arch: str, input_shape: tuple[int, ...]) -> TextShape:
    """The shape as that of texts, or a refusal."""
    if isinstance(input_shape, TextShape):
        return input_shape
    raise ConfigError(f"{arch} reads texts, but the data holds inputs of shape {input_shape}; choose another model")


def _refuse_text(arch: str, input_shape: tuple[int, ...]) -> None:
    if isinstance(input_shape, TextShape):
        raise ConfigError(f"{arch} cannot read texts; choose a text model such as text_cnn or text_transformer")


def require_image(arch: str, input_shape: tuple[int, ...], smallest: int) -> tuple[int, int, int]:
    """The shape as (channels, height, width), or a refusal that says what ``arch`` needs."""
    _refuse_text(arch, input_shape)
    if len(input_shape) == 3 and input_shape[0] >= 1 and min(input_shape[1:]) >= smallest:
        channels, height, width = input_shape
        return channels, height, width
    raise ConfigError(
        f"{arch} cannot take inputs of shape {input_shape}: "
        f"it needs images (channels, height, width) of at least {smallest}x{smallest} pixels"
    )


def require_numbers(arch: str, input_shape: tuple[int, ...]) -> None:
    """Any shape with something in it, or a refusal."""
    _refuse_text(arch, input_shape)
    if not input_shape or min(input_shape) < 1:
        raise ConfigError(
            f"{arch} cannot take inputs of shape {input_shape}: it needs at least one dimension, and none of size 0"
        )
