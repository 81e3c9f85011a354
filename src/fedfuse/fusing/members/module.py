"""Networks that Python hands over: asked as copies, so that those of the caller stay as they are, bit for bit."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError
from fedfuse.data.dataset import InputKind
from fedfuse.data.raw import RawImages
from fedfuse.fusing.members.asking import checked_logits, frozen, in_batches, voice_of
from fedfuse.fusing.members.base import About, Member, Voice
from fedfuse.fusing.members.inputs import Preparation, askable, normalisation_of, prepared, read
from fedfuse.fusing.members.own import ModuleBlueprint, copied
from fedfuse.fusing.members.said import Said
from fedfuse.fusing.members.state_dict import rows_of_last
from fedfuse.fusing.members.tensors import check_finite, common_dtype
from fedfuse.fusing.members.zoo import told_shape
from fedfuse.fusing.raw import Raw
from fedfuse.models import Classifier
from fedfuse.models.predictor import Predictor
from fedfuse.runtime.source import prediction_batch


class ModuleMember(Member):
    """A torch module; one of fedfuse that knows its raw inputs reads them as it always does."""

    def __init__(self, network: nn.Module, said: Said) -> None:
        if "ForSequenceClassification" in type(network).__name__:
            raise ConfigError(
                f"{said.name} reads texts, but brings no tokenizer; save both into a folder and give that"
            )
        self._network = network
        known = network.predictor if isinstance(network, Classifier) and said.normalise is None else None
        self._predictor: Predictor | None = known
        shape, reads = said.shape, said.reads
        if known is not None:
            shape, reads = known.input_shape, askable(known.interface.inputs, said.name).kind
        kind: InputKind = reads or ("numbers" if shape is not None and len(shape) == 1 else "images")
        self._preparation = Preparation(kind, shape, said.normalise)
        labels = known.interface.class_names if known is not None else _labels(network)
        count = said.class_count or (len(labels) if labels else rows_of_last(_shapes(network), said.name))
        state = network.state_dict()
        shapes = {key: tuple(tensor.shape) for key, tensor in state.items()}
        self.about = About(
            name=said.name,
            origin=f"{type(network).__module__}.{type(network).__qualname__}",
            format="torch module",
            architecture=type(network).__name__,
            reads=kind,
            shape=None if shape is None else told_shape(shape),
            classes=count,
            class_names=said.class_names(count, labels),
            parameters=sum(parameter.numel() for parameter in network.parameters()),
            dtype=common_dtype({key: tensor.dtype for key, tensor in state.items()}, shapes),
            sha256=_sha256(state),
            licence=said.licence,
            notes=() if known is not None else self._preparation.notes,
        )

    @property
    def weights(self) -> Mapping[str, Tensor]:
        return {name: tensor.detach().cpu() for name, tensor in self._network.state_dict().items()}

    @property
    def blueprint(self) -> ModuleBlueprint | None:
        """More of the same, if it is known what size of images they read."""
        if self._predictor is not None:
            inputs = askable(self._predictor.interface.inputs, self.about.name)
            return ModuleBlueprint(self._network, inputs, self._predictor.input_shape)
        shape = self._preparation.shape
        if self.about.reads != "images" or shape is None:
            return None
        constants = normalisation_of(self._preparation.normalise or "none", shape[0], self.about.name)
        return ModuleBlueprint(self._network, RawImages(mean=constants.mean, std=constants.std), shape)

    @contextmanager
    def speaking(self, device: torch.device) -> Iterator[Voice]:
        check_finite(self.weights, self.about.name)
        network = frozen(copied(self._network, self.about.name).float(), device)
        known = self._predictor
        if known is not None and known.goes_by_batch(network):
            inputs = askable(known.interface.inputs, self.about.name)
            yield lambda raw: known.logits(network, read(inputs, known.input_shape, raw, self.about.name))
            return
        yield voice_of(network, self._prepare, self.about, device)

    def _prepare(self, raw: Raw) -> Tensor:
        if self._predictor is None:
            return self._preparation(raw, self.about.name)
        inputs = askable(self._predictor.interface.inputs, self.about.name)
        return prepared(inputs, self._predictor.input_shape, raw, self.about.name)


class FunctionMember(Member):
    """Any function from raw inputs, as they are, to logits."""

    def __init__(self, function: Callable[[Any], Any], said: Said) -> None:
        count = said.class_count
        if count is None:
            raise ConfigError(f"{said.name} is a function, which does not say how many classes it knows; give classes=")
        self._function = function
        called = getattr(function, "__qualname__", type(function).__qualname__)
        self.about = About(
            name=said.name,
            origin=f"{getattr(function, '__module__', type(function).__module__)}.{called}",
            format="function",
            architecture=called,
            reads=said.reads or "images",
            shape=None,
            classes=count,
            class_names=said.class_names(count),
            parameters=0,
            dtype="unknown",
            sha256=hashlib.sha256(_source(function).encode()).hexdigest(),
            licence=said.licence,
        )

    @contextmanager
    def speaking(self, device: torch.device) -> Iterator[Voice]:
        yield in_batches(self._answer, self.about.classes, prediction_batch(device))

    @torch.no_grad()
    def _answer(self, raw: Raw) -> Tensor:
        return checked_logits(self._function(raw), len(raw), self.about.classes, self.about.name)


def _shapes(network: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(parameter.shape) for name, parameter in network.named_parameters()}


def _labels(network: nn.Module) -> tuple[str, ...] | None:
    """The names of the classes, where a network of transformers knows them."""
    labels = getattr(getattr(network, "config", None), "id2label", None)
    return tuple(str(labels[number]) for number in sorted(labels)) if isinstance(labels, dict) and labels else None


def _sha256(state: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name, tensor in state.items():
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _source(function: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return repr(type(function))
