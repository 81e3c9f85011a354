"""A network's answers to raw inputs."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedfuse.core.errors import DataError
from fedfuse.core.hashes import order_of
from fedfuse.models.interface import Interface

BATCH = 256
"""Inputs at a time."""


@dataclass(frozen=True)
class Predictor:
    """From raw inputs to probabilities and names, for a network whose inputs have this shape."""

    interface: Interface
    input_shape: tuple[int, ...]

    def predict(self, network: nn.Module, raw: Any) -> NDArray[Any]:
        best: NDArray[Any] = self.interface.classes[self.probabilities(network, raw).argmax(axis=1)]
        return best

    def probabilities(self, network: nn.Module, raw: Any) -> NDArray[np.float32]:
        """One row for each input, one column for each class."""
        return self.logits(network, self.interface.inputs.read(raw, self.input_shape)).softmax(dim=1).numpy()

    def logits(self, network: nn.Module, inputs: Tensor) -> Tensor:
        """What the network itself says of inputs that were read already."""
        if not self.goes_by_batch(network):
            return self._ask(network, inputs, torch.arange(len(inputs)).split(BATCH))
        if len(inputs) < 2:
            raise DataError(
                "the model normalises by each batch (federation.batch_norm: batch), so it must be asked about two "
                "inputs at least, and better about hundreds"
            )
        return self._ask(_without_statistics(network), inputs, self._mixed_batches(inputs))

    def goes_by_batch(self, network: nn.Module) -> bool:
        """Whether an answer depends on the inputs beside it."""
        return self.interface.batch_statistics is not None and bool(_batch_norms(network))

    def in_words(self) -> str:
        return self.interface.in_words(self.input_shape)

    def _mixed_batches(self, inputs: Tensor) -> Sequence[Tensor]:
        """Of equal size and in an order that depends on the inputs alone, as where the model was evaluated."""
        size = self.interface.batch_statistics or BATCH
        return order_of(inputs).tensor_split(min(-(-len(inputs) // size), len(inputs) // 2))

    def _ask(self, network: nn.Module, inputs: Tensor, batches: Sequence[Tensor]) -> Tensor:
        transform = self.interface.inputs.transform(self.input_shape)
        device = next((parameter.device for parameter in network.parameters()), torch.device("cpu"))
        answers = torch.empty(len(inputs), len(self.interface.class_names))
        with torch.inference_mode(), _in_eval_mode(network):
            for where in batches:
                answers[where] = network(transform(inputs[where]).to(device)).cpu()
        return answers


def _without_statistics(network: nn.Module) -> nn.Module:
    """A copy whose BatchNorm layers have nothing but the batch to normalise by."""
    network = copy.deepcopy(network)
    for layer in _batch_norms(network):
        layer.running_mean = layer.running_var = None
    return network


def _batch_norms(network: nn.Module) -> list[nn.modules.batchnorm._BatchNorm]:
    return [layer for layer in network.modules() if isinstance(layer, nn.modules.batchnorm._BatchNorm)]


@contextmanager
def _in_eval_mode(network: nn.Module) -> Iterator[None]:
    was_training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(was_training)
