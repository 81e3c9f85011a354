"""Inputs that a frozen generator makes once, before round 1, as FedDF did with BigGAN: a fixed table for everybody.

The generator is a file of ``fedfuse generator train`` or any function ``package.module:function`` that

    is called with (count: int, generator: torch.Generator), and with labels=, an int64 tensor of the classes wanted,
    if it has a parameter of that name; and
    returns a tensor of count inputs: images count x C x H x W as floats in 0..1 or as uint8, or float features.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.core.imports import Address, first_line, import_function
from fedfuse.core.paths import PathText, expanded
from fedfuse.parts.sources.base import SourceSettings, Surroundings, check_classes, make_source, refuse_texts
from fedfuse.parts.sources.generators import Generator, load_generator
from fedfuse.runtime.source import Source

Function = Callable[..., Any]


class FrozenGenerator(SourceSettings):
    """What a generator makes of noise, and of classes drawn uniformly if it is conditional."""

    kind: Literal["generator"] = "generator"
    file: PathText | None = Field(None, description="a generator that fedfuse generator train wrote")
    callable: Address | None = Field(
        None,
        description="package.module:function, your own generator; modules in the current folder are found",
    )
    size: int = Field(5000, ge=2, description="number of generated inputs")
    classes: tuple[int, ...] | None = Field(
        None, min_length=1, description="only these classes, for a conditional generator; all of them if not given"
    )

    @model_validator(mode="after")
    def _one_generator(self) -> Self:
        if (self.file is None) == (self.callable is None):
            raise ValueError("name one generator: either file or callable")
        return self

    @property
    def own_code(self) -> tuple[str, ...]:
        return (*super().own_code, *((self.callable,) if self.callable is not None else ()))

    def open(self, surroundings: Surroundings) -> Source:
        refuse_texts(self.kind, surroundings)
        function = self._function()
        name = Path(self.file).name if self.file is not None else str(self.callable)
        options, key = {}, surroundings.key
        if _takes_labels(function):
            known = function.card.classes if isinstance(function, Generator) else surroundings.classes
            options["labels"] = self._labels(known, name, key.child("labels").torch())
        elif self.classes is not None:
            raise ConfigError(f"source.classes is for conditional generators, but {name} has no parameter 'labels'")
        # A function that forgets the generator it was given still gives the same inputs for the same seed.
        with surroundings.compute.at_work(), torch.no_grad(), key.child("default").default_generator():
            try:
                made = function(self.size, key.child("noise").torch(), **options)
            except Exception as error:  # whatever a user's function raises is the user's to mend
                raise ConfigError(f"source: {name} failed with {first_line(error)}") from error
        images = surroundings.clients.kind == "images"
        raw = _checked(made, name, self.size, images)
        return make_source(name, raw, surroundings.transform, surroundings, "choose a generator of that shape")

    def _function(self) -> Function:
        if self.file is not None:
            return load_generator(expanded(self.file, "source.file"))
        return import_function(str(self.callable), "source.callable")

    def _labels(self, known: int, name: str, random: torch.Generator) -> Tensor:
        if self.classes is not None:
            check_classes(self.classes, known, name)
        wanted = torch.tensor(self.classes if self.classes is not None else range(known))
        return wanted[torch.randint(len(wanted), (self.size,), generator=random)]


def _takes_labels(function: Function) -> bool:
    try:
        return "labels" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C, without a signature
        return False


def _checked(made: Any, name: str, count: int, images: bool) -> Tensor:
    """What the generator made as inputs of the clients' kind, or a sentence about what it should have made."""
    kind = "images count x C x H x W, floats in 0..1 or uint8" if images else "float features, one row for each"
    promise = f"a generator must return a tensor of {count} {kind}"
    if not isinstance(made, Tensor):
        raise ConfigError(f"source: {name} returned {type(made).__name__}; {promise}")
    if made.ndim < 2 or len(made) != count or (images and made.ndim != 4):
        raise ConfigError(f"source: {name} returned a tensor of shape {tuple(made.shape)}; {promise}")
    raw = made.detach().cpu().contiguous()
    if images and raw.dtype == torch.uint8:
        return raw
    if not raw.is_floating_point():
        raise ConfigError(f"source: {name} returned numbers of type {raw.dtype}; {promise}")
    if not bool(raw.isfinite().all()):
        raise ConfigError(f"source: {name} returned NaN or infinite numbers; {promise}")
    if not images:
        return raw.float()
    low, high = raw.min().item(), raw.max().item()
    if low < 0 or high > 1:
        raise ConfigError(f"source: {name} returned pixels from {low:g} to {high:g}; {promise}")
    return (255 * raw).round().to(torch.uint8)
