"""A student that Python hands over as a module: copied, trained as it is, and written as weights by its own names."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError
from fedfuse.core.files import write_bytes
from fedfuse.core.plain_json import dumps
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.fusing.members.asking import checked_logits
from fedfuse.fusing.members.files import in_brief
from fedfuse.fusing.members.inputs import Inputs
from fedfuse.fusing.members.zoo import ReadingBlueprint, fill
from fedfuse.models.adapt import AdaptedClassifier, logits_of
from fedfuse.models.given import model_section
from fedfuse.models.interface import Interface
from fedfuse.models.own import Own
from fedfuse.models.saved import save_model


class OwnNetwork(nn.Module):
    """A module that gives logits, whatever it wraps them into itself."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, prepared: Tensor) -> Tensor:
        logits: Tensor = logits_of(self.inner(prepared))
        return logits


@dataclass(frozen=True, eq=False)
class ModuleBlueprint(ReadingBlueprint):
    """Copies of one module, with the weights that it has; inputs are read as for the zoo's networks."""

    network: nn.Module
    inputs: Inputs
    input_shape: tuple[int, ...]

    @property
    def name(self) -> str:  # type: ignore[override]
        return type(self.network).__name__

    def build(self, classes: int, key: Key) -> OwnNetwork:
        """The module's copy; it was made with its number of classes, so another is refused."""
        network = OwnNetwork(copied(self.network, self.name).float().train().requires_grad_(True))
        check_answers(network, self._probe(), classes, self.name)
        return network

    def load(self, network: nn.Module, weights: Mapping[str, Tensor]) -> None:
        assert isinstance(network, OwnNetwork), "it was built here"
        fill(network.inner, weights, self.name)

    def weights_of(self, network: nn.Module) -> dict[str, Tensor]:
        assert isinstance(network, OwnNetwork), "it was built here"
        return {name: tensor.detach().clone() for name, tensor in network.inner.state_dict().items()}

    def write(
        self, folder: Path, network: nn.Module, class_names: Sequence[str], facts: Mapping[str, Any]
    ) -> list[Path]:
        """The weights alone; and as a model of fedfuse, if the module's class can be named and called again."""
        state = {name: tensor.cpu().contiguous() for name, tensor in self.weights_of(network).items()}
        weights = folder / "weights.safetensors"
        write_bytes(weights, save(state, {"classes": dumps(list(class_names)), "facts": dumps(dict(facts))}))
        described = self._described(len(class_names))
        if described is None:
            return [weights]
        architecture, adapted = described
        fill(adapted, state, self.name)
        interface = Interface(inputs=self.inputs, class_names=tuple(class_names))
        model = folder / "model.safetensors"
        save_model(
            model, architecture, self.input_shape, len(class_names), Weights.of(adapted), interface, network=adapted
        )
        return [model, weights]

    def _described(self, classes: int) -> tuple[Own, AdaptedClassifier] | None:
        try:
            with warnings.catch_warnings(), Key(0).default_generator():
                warnings.simplefilter("ignore")
                architecture = Own(**model_section(self.network, "student"))
                network = architecture.build(self.input_shape, classes)
        except ConfigError:
            return None
        return (architecture, network) if isinstance(network, AdaptedClassifier) else None

    def _probe(self) -> Tensor:
        random = Key(0, ("probe",)).torch()
        return self.inputs.transform(self.input_shape)(self.inputs.made_up(2, self.input_shape, random))


def copied(network: nn.Module, name: str) -> nn.Module:
    """A copy on the CPU that shares nothing with the caller's."""
    try:
        return copy.deepcopy(network).cpu()
    except Exception as error:  # somebody else's module may hold anything
        raise ConfigError(f"{name} cannot be copied ({in_brief(error)}); give a function that makes it") from error


def check_answers(network: nn.Module, probe: Tensor, classes: int, name: str) -> None:
    """Refuse a network that does not give a row of logits for each input."""
    was = [(module, module.training) for module in network.modules()]
    network.eval()
    try:
        with torch.no_grad():
            output = network(probe)
    except Exception as error:
        raise ConfigError(f"{name} cannot read inputs of {tuple(probe.shape)} ({in_brief(error)})") from error
    finally:
        for module, training in was:
            module.training = training
    checked_logits(output, len(probe), classes, name)
