"""A network of one's own, in the forms that people have it, as a classifier of ours and as arrays of Flower's."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from flwr.app import Array, ArrayRecord
from torch import Tensor, nn

from fedfuse.core.errors import DataError
from fedfuse.core.imports import first_line
from fedfuse.core.weights import DistantWeights, Weights
from fedfuse.federation.inspection import VARIANCE
from fedfuse.models import Classifier
from fedfuse.models.classifier import LayeredClassifier
from fedfuse.parts.tensor_spec import TensorSpec
from fedfuse.runtime.source import Source

Model = nn.Module | Callable[[], nn.Module]
"""A network, its class, or a function that makes it."""


class Network:
    """One network: a classifier of ours, and which of its weights each array of its owner's state dict is."""

    def __init__(self, name: str, own: nn.Module, classifier: Classifier) -> None:
        self.classifier = classifier
        entries = {id(t): entry for entry, t in (*classifier.named_parameters(), *classifier.named_buffers())}
        state: dict[str, Any] = own.state_dict(keep_vars=True)
        for array, tensor in state.items():
            if nn.parameter.is_lazy(tensor):
                raise DataError(f"{name} has '{array}' without a shape; give inputs that reach it")
            if id(tensor) not in entries:
                raise DataError(f"{name} has '{array}' in its state dict, which is none of its parameters and buffers")
            if tensor.is_floating_point() and tensor.dtype != torch.float32:
                raise DataError(
                    f"{name} has '{array}' of type {tensor.dtype}, but must be float32; call .float() on it"
                )
        self.entries = {array: entries[id(tensor)] for array, tensor in state.items() if tensor.is_floating_point()}
        self.whole = {array: tensor.cpu().clone() for array, tensor in state.items() if array not in self.entries}
        """Arrays of whole numbers, such as counters, which do not travel."""
        self.first = Weights.of(classifier)
        self.specs = {
            array: TensorSpec(tensor.shape, tensor.dtype, least=0 if array.endswith(VARIANCE) else None)
            for array, tensor in state.items()
        }

    def check(self, arrays: Mapping[str, Tensor]) -> None:
        """Raise a DataError with the reason if these are no arrays of this network."""
        if arrays.keys() != self.specs.keys():
            raise DataError("its arrays are not those of the network")
        for array, spec in self.specs.items():
            if fault := spec.fault(arrays[array]):
                raise DataError(f"array '{array}' is {fault}")

    def weights(self, arrays: Mapping[str, Tensor]) -> Weights:
        """The weights that such arrays are, without a copy of them."""
        return ArrayWeights(arrays, self)

    def record(self, weights: Weights) -> ArrayRecord:
        """The way back, for ``load_state_dict``; whole numbers are as they were at the start."""
        tensors = {array: weights[entry] for array, entry in self.entries.items()} | self.whole
        return ArrayRecord({array: Array(tensors[array].numpy()) for array in self.specs})


class ArrayWeights(DistantWeights):
    """Weights in the arrays of a message; what no array has, such as buffers that are not saved, is the network's."""

    def __init__(self, arrays: Mapping[str, Tensor], network: Network) -> None:
        super().__init__(torch.float32, network.first.layout)
        self._arrays = {entry: arrays[array] for array, entry in reversed(network.entries.items())}
        self._network = network

    def read(self) -> Tensor:
        own = self._network.first
        return torch.cat([self._arrays.get(entry, own[entry]).reshape(-1) for entry in own])


class Logits(Classifier):
    """A network whose answer is its logits, whatever it wraps them in."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.classifier = nn.Identity()

    def features(self, x: Tensor) -> Tensor:
        said = self.network(x)
        if isinstance(said, Mapping):
            said = said.get("logits")
        elif isinstance(said, tuple | list):
            said = said[0]
        logits: Tensor = getattr(said, "logits", said)
        return logits


def new_network(called: str, model: Model) -> nn.Module:
    """A new one, or a copy of one that is there."""
    if isinstance(model, nn.Module):
        return copy.deepcopy(model)
    if not callable(model):
        raise DataError(f"{called} is a {type(model).__name__}; give a network, its class or a function that makes it")
    try:
        network = model()
    except Exception as error:  # somebody else's code, which may want arguments
        raise DataError(f"{called} cannot be made: {first_line(error)}") from error
    if not isinstance(network, nn.Module):
        raise DataError(f"{called} makes a {type(network).__name__}, not a torch module")
    return network


def classifier_of(own: nn.Module) -> Classifier:
    """The same layers as a classifier: one whose layers can be told apart, if they are in a row."""
    if isinstance(own, Classifier):
        return own
    if type(own) is nn.Sequential and len(own) and isinstance(last := own[-1], nn.Linear):
        layered = LayeredClassifier(nn.Sequential(*list(own)[:-1]), last.in_features, last.out_features)
        layered.classifier = last
        return layered
    return Logits(own)


def classes_of(called: str, classifier: Classifier, source: Source | None) -> int | None:
    """How many logits it answers two of the inputs with; without inputs, what its last layer says, if it has one."""
    if source is None:
        return getattr(classifier.classifier, "out_features", None)
    inputs = source.inputs(source.all_indices()[:2])
    try:
        with torch.no_grad():
            logits = classifier.eval()(inputs)
    except Exception as error:  # a network of one's own may raise anything
        shape = tuple(source.raw.shape[1:])
        raise DataError(f"{called} fails on inputs of shape {shape}: {first_line(error)}") from error
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != len(inputs):
        raise DataError(f"{called} must answer a batch of inputs with one row of logits for each")
    return logits.shape[1]
