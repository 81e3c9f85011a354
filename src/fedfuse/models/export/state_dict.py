"""The weights alone, as ``load_state_dict`` of the network takes them; one of the user's own has its own names."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file, save
from torch import Tensor

from fedfuse.models.adapt import AdaptedClassifier
from fedfuse.models.classifier import Classifier
from fedfuse.models.export.format import Format


class StateDict(Format):
    """A safetensors file without metadata."""

    def reads(self, model: Classifier) -> str:
        return "inputs that are normalised already: the file holds weights alone"

    def gives(self, model: Classifier) -> str:
        return "one logit per class"

    def write(self, model: Classifier, path: Path) -> None:
        path.write_bytes(save({name: tensor.contiguous().clone() for name, tensor in _state(model).items()}))

    def difference(self, model: Classifier, path: Path) -> float:
        state, found = _state(model), load_file(path)
        if state.keys() != found.keys():
            return float("inf")
        return max(float((state[name].double() - tensor.double()).abs().max()) for name, tensor in found.items())


def _state(model: Classifier) -> dict[str, Tensor]:
    with torch.no_grad():
        return model.own_state({}) if isinstance(model, AdaptedClassifier) else dict(model.state_dict())
