"""Models that fedfuse saved: files that say themselves how they read inputs and what their classes are called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.text import TextShape
from fedfuse.core.weights import Layout
from fedfuse.data.raw import RawImages, RawTexts
from fedfuse.fusing.members.asking import frozen, voice_of
from fedfuse.fusing.members.base import About, Member, Voice
from fedfuse.fusing.members.files import sha256_of_files
from fedfuse.fusing.members.inputs import NOT_SAID, Inputs, askable, normalisation_of, read
from fedfuse.fusing.members.said import Said
from fedfuse.fusing.members.tensors import FileTensors, is_of_fedfuse
from fedfuse.fusing.members.zoo import ZooBlueprint, told_shape
from fedfuse.fusing.raw import Raw
from fedfuse.models import parameter_count
from fedfuse.models.card import ModelCard
from fedfuse.models.predictor import Predictor
from fedfuse.models.saved import described, load_model


class SavedMember(Member):
    """One file."""

    def __init__(self, path: Path, said: Said) -> None:
        self.path, self._trusted = path, said.trust_own_code
        self._card, network = described(path, self._trusted)
        self._inputs, notes = _inputs(self._card, said)
        self._widths = None if self._card.own_names else _widths(network, self.weights)
        interface = self._card.interface
        self.about = About(
            name=said.name,
            origin=str(path),
            format="fedfuse",
            architecture=self.blueprint.name,
            reads=self._inputs.kind,
            shape=told_shape(self._card.input_shape),
            classes=self._card.classes,
            class_names=said.class_names(self._card.classes, None if interface is None else interface.class_names),
            parameters=parameter_count(network),
            dtype=self.weights.dtype,
            sha256=sha256_of_files([path]),
            licence=said.licence,
            vocabulary=_vocabulary(self._inputs, self._card.input_shape),
            notes=notes,
        )

    @cached_property
    def weights(self) -> FileTensors:
        return FileTensors([self.path])

    @contextmanager
    def speaking(self, device: torch.device) -> Iterator[Voice]:
        network = load_model(self.path, self._trusted)
        frozen(network, device)
        if network.predictor is not None and network.predictor.goes_by_batch(network):
            predictor = Predictor(
                network.predictor.interface.model_copy(update={"inputs": self._inputs}), self._card.input_shape
            )
            yield lambda raw: predictor.logits(network, self._read(raw))
        else:
            yield voice_of(network, self.blueprint.prepare, self.about, device)

    @property
    def blueprint(self) -> ZooBlueprint:
        return ZooBlueprint(self._card.architecture, self._card.input_shape, self._inputs, self._widths)

    def starting(self, class_names: Sequence[str]) -> ZooBlueprint:
        """The same with its own weights in it, the last layer's where the classes are the same."""
        return replace(
            self.blueprint, first_weights=self.weights, keeps_head=self.about.class_names == tuple(class_names)
        )

    def _read(self, raw: Raw) -> Tensor:
        return read(self._inputs, self._card.input_shape, raw, self.about.name)


def model_in(folder: Path) -> Path:
    """The only model of a run, or of any folder that holds one."""
    for place in (folder / "final", folder):
        files = sorted(place.glob("*.safetensors")) if place.is_dir() else []
        models = [file for file in files if is_of_fedfuse(file)] or files  # beside a model may lie its weights alone
        if len(models) > 1:
            raise DataError(f"{folder} holds {len(models)} models; give the file of one, for example {models[0]}")
        if models:
            return models[0]
    raise DataError(f"{folder} holds no model; a run writes its models into the folder final when it ends")


def _inputs(card: ModelCard, said: Said) -> tuple[Inputs, tuple[str, ...]]:
    """What the file says of its inputs, unless the caller knows better; and what had to be taken for granted."""
    known = card.interface.inputs if card.interface is not None else None
    shape = card.input_shape
    if known is None and (isinstance(shape, TextShape) or len(shape) != 3):
        raise DataError(
            f"{said.name} does not say how it reads its inputs, like files of earlier versions; train it again"
        )
    if known is not None and said.normalise is None:
        return askable(known, said.name), ()
    if not isinstance(known, RawImages | None):
        raise ConfigError(f"{said.name} reads {known.kind} in its own way; leave normalise out")
    constants = normalisation_of(said.normalise or "none", shape[0], said.name)
    return RawImages(mean=constants.mean, std=constants.std), () if said.normalise else (NOT_SAID,)


def _widths(network: nn.Module, weights: FileTensors) -> Layout | None:
    """Its layers', where they are other than the architecture's own."""
    own = Layout.of(network)
    found = Layout(
        tuple((name, weights.shapes[name]) for name, _ in own.parameters),
        tuple((name, weights.shapes[name]) for name, _ in own.buffers),
    )
    return None if found == own else found


def _vocabulary(inputs: Inputs, shape: tuple[int, ...]) -> str | None:
    """Two models number tokens alike if this is the same of both."""
    if not isinstance(inputs, RawTexts):
        return None
    return inputs.sha256 or f"{inputs.text.tokenizer} {shape[1]} lower={inputs.text.lower}"
