"""Weights alone, of any origin: whoever gives them says which network they belong to, and how it reads its inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from fedfuse.catalogue.datasets import CATALOGUE
from fedfuse.core.choice import is_address
from fedfuse.core.errors import ConfigError, DataError, unknown
from fedfuse.core.part import first_mistake
from fedfuse.core.randomness import Key
from fedfuse.core.text import TextShape
from fedfuse.data.raw import RawImages, RawNumbers, RawTexts
from fedfuse.data.tokens import TextSettings
from fedfuse.fusing.members.asking import frozen, voice_of
from fedfuse.fusing.members.base import About, Member, Voice
from fedfuse.fusing.members.files import first_bytes, sha256_of_files
from fedfuse.fusing.members.inputs import NOT_SAID, Inputs, Normalise, normalisation_of
from fedfuse.fusing.members.pickled import read_pickled
from fedfuse.fusing.members.said import Arch, Said
from fedfuse.fusing.members.tensors import FileTensors, check_finite, common_dtype
from fedfuse.fusing.members.zoo import ZooBlueprint, fill, told_shape
from fedfuse.models import ARCHITECTURES, AnyArchitecture, Architecture, parameter_count
from fedfuse.models.bounded import REPLACED, SLACK, SMALL, at_most

SIDE = 32
"""Pixels of an image's side, where neither the caller nor the constants say it."""
TOKENS = 64
ANY_ARCHITECTURE: TypeAdapter[Architecture] = TypeAdapter(AnyArchitecture)


class StateDictMember(Member):
    """A file of weights, and the architecture that the caller names."""

    def __init__(self, path: Path, said: Said) -> None:
        self.path = path
        tensors = self._tensors()
        shapes = tensors.shapes if isinstance(tensors, FileTensors) else _shapes(tensors)
        count = said.class_count or rows_of_last(shapes, said.name)
        architecture = architecture_of(_needed(said, path))
        input_shape = _input_shape(architecture, said.shape, shapes, said.normalise)
        inputs, notes = _inputs(input_shape, said.normalise, said.name)
        self._blueprint = ZooBlueprint(architecture, input_shape, inputs)
        network = _built(self._blueprint, count, shapes, said.name)
        if isinstance(tensors, FileTensors):  # names and shapes are told from the header, before any work
            fill(network.to("meta"), _like(tensors), said.name)
        else:
            fill(network, tensors, said.name)
        dtypes = tensors.dtypes if isinstance(tensors, FileTensors) else {key: t.dtype for key, t in tensors.items()}
        self.about = About(
            name=said.name,
            origin=str(path),
            format="state dict",
            architecture=self._blueprint.name,
            reads=inputs.kind,
            shape=told_shape(input_shape),
            classes=count,
            class_names=said.class_names(count),
            parameters=parameter_count(network),
            dtype=common_dtype(dtypes, shapes),
            sha256=sha256_of_files([path]),
            licence=said.licence,
            notes=notes,
        )

    @property
    def weights(self) -> Mapping[str, Tensor]:
        return self._tensors()

    @property
    def blueprint(self) -> ZooBlueprint:
        return self._blueprint

    @contextmanager
    def speaking(self, device: torch.device) -> Iterator[Voice]:
        network = self._blueprint.build(self.about.classes, Key(0))
        weights = self._tensors()
        check_finite(weights, self.about.name)
        fill(network, weights, self.about.name)
        frozen(network, device)
        yield voice_of(network, self._blueprint.prepare, self.about, device)

    def _tensors(self) -> FileTensors | dict[str, Tensor]:
        """By name; a pickle of torch is read whole, because it cannot be read otherwise without being trusted."""
        if is_safetensors(first_bytes(self.path, 9)):
            return FileTensors([self.path])
        return read_pickled(self.path)


def is_safetensors(head: bytes) -> bool:
    """Whether a file begins with the length of a header and a brace."""
    return len(head) >= 9 and head[8:9] == b"{"


def architecture_of(arch: Arch) -> Architecture:
    """By its name in the zoo, by the address of a function, or with options as an experiment file has them."""
    if isinstance(arch, Architecture):
        return arch
    if isinstance(arch, str):
        if is_address(arch):
            arch = {"arch": "own", "callable": arch}
        elif arch not in ARCHITECTURES:
            raise ConfigError(unknown("architecture", arch, ARCHITECTURES))
        else:
            arch = {"arch": arch}
    try:
        return ANY_ARCHITECTURE.validate_python(dict(arch))
    except ValidationError as error:
        raise ConfigError(f"arch: {first_mistake(error, skip=1)}") from None


def rows_of_last(shapes: Mapping[str, tuple[int, ...]], name: str) -> int:
    """The outputs of what is last in a file of weights: nearly always the classifier's."""
    last = next((shape for key, shape in reversed(list(shapes.items())) if shape and not _is_counter(key)), None)
    head = next((shape for key, shape in shapes.items() if key in ("classifier.weight", "fc.weight")), last)
    if head is None:
        raise DataError(f"{name} holds no weights")
    return head[0]


def _needed(said: Said, path: Path) -> Arch:
    if said.arch is None:
        raise ConfigError(
            f"{path} holds weights alone; say which network they belong to: arch, a name such as resnet20 (fedfuse "
            "models lists them) or package.module:function"
        )
    return said.arch


def _is_counter(key: str) -> bool:
    return key.endswith("num_batches_tracked")


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def _like(tensors: FileTensors) -> dict[str, Tensor]:
    return {name: torch.empty(shape, device="meta") for name, shape in tensors.shapes.items()}


def _input_shape(
    architecture: Architecture,
    shape: tuple[int, ...] | None,
    shapes: Mapping[str, tuple[int, ...]],
    normalise: Normalise | None,
) -> tuple[int, ...]:
    """As the caller says; or with the channels of the first convolution, and the size of the named dataset's images."""
    if architecture.arch.startswith("text_"):
        rows = next((rows for key, (rows, *_) in shapes.items() if "embedding" in key), 0)
        return TextShape(shape[0] if shape else TOKENS, rows)
    if shape is not None:
        return tuple(shape)
    kernel = next((one for one in shapes.values() if len(one) == 4), None)
    card = CATALOGUE.get(normalise) if isinstance(normalise, str) else None
    if card is not None and len(card.shape) == 3:
        return (kernel[1] if kernel else card.shape[0], *card.shape[1:])
    if kernel is None and (first := next((one for one in shapes.values() if len(one) == 2), None)):
        return (first[1],)
    return (kernel[1] if kernel else 3, SIDE, SIDE)


def _inputs(shape: tuple[int, ...], normalise: Normalise | None, name: str) -> tuple[Inputs, tuple[str, ...]]:
    if isinstance(shape, TextShape):
        return RawTexts(text=TextSettings(max_length=shape.length, vocabulary=shape.vocabulary)), ()
    constants = normalisation_of(normalise or "none", shape[0], name)
    kind = RawImages if len(shape) == 3 else RawNumbers
    return kind(mean=constants.mean, std=constants.std), () if normalise else (NOT_SAID,)


def _built(blueprint: ZooBlueprint, classes: int, shapes: Mapping[str, tuple[int, ...]], name: str) -> Any:
    """The network, given up before it costs memory if the file cannot hold its weights."""
    try:
        with at_most(4 * len(shapes) + REPLACED, SLACK * sum(map(prod, shapes.values())) + SMALL):
            return blueprint.build(classes, Key(0))
    except (ValueError, RuntimeError, ArithmeticError, MemoryError) as error:
        raise ConfigError(f"{name} does not fit {blueprint.name}: {error}") from None
