"""Networks of the model zoo, and of the user's own functions: how to make, prepare, fill and write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError, shortened
from fedfuse.core.randomness import Key
from fedfuse.core.text import TextShape
from fedfuse.core.weights import Layout, Weights
from fedfuse.data.dataset import InputKind
from fedfuse.fusing.members.base import Blueprint
from fedfuse.fusing.members.inputs import Inputs, prepared
from fedfuse.fusing.raw import Raw
from fedfuse.models import Architecture, Classifier, create
from fedfuse.models.adapt import AdaptedClassifier
from fedfuse.models.interface import Interface
from fedfuse.models.saved import save_model
from fedfuse.models.widths import fitted

HEAD = "classifier."


class ReadingBlueprint(Blueprint):
    """The base of those that read inputs of one shape as ``inputs`` says."""

    inputs: Inputs
    input_shape: tuple[int, ...]

    @property
    def reads(self) -> InputKind:  # type: ignore[override]
        return self.inputs.kind

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return told_shape(self.input_shape)

    def prepare(self, raw: Raw) -> Tensor:
        return prepared(self.inputs, self.input_shape, raw, self.name)


@dataclass(frozen=True)
class ZooBlueprint(ReadingBlueprint):
    """An architecture for inputs of one shape, which are read as ``inputs`` says."""

    architecture: Architecture
    input_shape: tuple[int, ...]
    inputs: Inputs
    widths: Layout | None = None
    """Of a network whose layers have other widths than its architecture's own."""
    first_weights: Mapping[str, Tensor] | None = None
    """What belongs to the blueprint itself; those of its last layer count only where they fit and ``keeps_head``."""
    keeps_head: bool = False

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.architecture.own_code[-1] if self.architecture.arch == "own" else self.architecture.arch

    def build(self, classes: int, key: Key) -> Classifier:
        network = create(self.architecture, self.input_shape, classes, key)
        if self.widths is not None and dict(self.widths.parameters)["classifier.weight"][0] == classes:
            network = fitted(network, self.widths)
        if self.first_weights is not None:
            self._begin(network, self.first_weights)
        return network

    def load(self, network: nn.Module, weights: Mapping[str, Tensor]) -> None:
        fill(network, weights, self.name)

    def weights_of(self, network: nn.Module) -> dict[str, Tensor]:
        if isinstance(network, AdaptedClassifier):
            return network.own_state({})
        return {name: tensor.clone() for name, tensor in Weights.of(network).items()}

    def write(
        self, folder: Path, network: nn.Module, class_names: Sequence[str], facts: Mapping[str, Any]
    ) -> list[Path]:
        assert isinstance(network, Classifier), "it was built here"
        path = folder / "model.safetensors"
        interface = Interface(inputs=self.inputs, class_names=tuple(class_names))
        weights = Weights.of(network)
        save_model(path, self.architecture, self.input_shape, len(class_names), weights, interface, network)
        return [path]

    def _begin(self, network: Classifier, weights: Mapping[str, Tensor]) -> None:
        """Put in what fits; a last layer for other classes stays as it was drawn."""
        given = network.adapted_state(weights) if isinstance(network, AdaptedClassifier) else weights
        own = dict(network.state_dict())
        with torch.no_grad():
            for name in own.keys() & given.keys():
                if name.startswith(HEAD) and not self.keeps_head:
                    continue
                if own[name].shape != given[name].shape:
                    raise ConfigError(f"{self.name} has no '{name}' of shape {tuple(given[name].shape)}")
                own[name].copy_(given[name])


def told_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """As tables have it: of texts how many tokens they have at most."""
    return (shape.length,) if isinstance(shape, TextShape) else shape


def fill(network: nn.Module, weights: Mapping[str, Tensor], name: str) -> None:
    """Put these weights into a network, all of them or none; BatchNorm's counters may be missing."""
    named = network.adapted_state(weights) if isinstance(network, AdaptedClassifier) else weights
    own = network.state_dict()
    needed = [key for key in own if key in Layout.of(network).by_name]
    check_names(needed, own.keys(), named.keys(), name)
    for key in needed:
        if own[key].shape != named[key].shape:
            raise ConfigError(
                f"{name}: '{key}' should have the shape {tuple(own[key].shape)}, but has {tuple(named[key].shape)}"
            )
    with torch.no_grad():
        for key in own.keys() & named.keys():
            own[key].copy_(named[key])


def check_names(needed: Sequence[str], known: Any, given: Any, name: str) -> None:
    """Refuse weights with other names, by the first of those that do not fit."""
    missing = [key for key in needed if key not in given]
    surplus = [key for key in given if key not in known]
    if missing or surplus:
        raise ConfigError(
            f"{name}: the weights have other names than the network's; "
            + "; ".join(
                f"{what} {shortened(', '.join(map(repr, names[:3])), 300)}"
                for what, names in (("it needs", missing), ("it does not know", surplus))
                if names
            )
        )
