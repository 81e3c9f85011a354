"""A network's answers to raw inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedfuse.core.errors import DataError
from fedfuse.core.hashes import order_of
from fedfuse.core.imports import first_line
from fedfuse.core.slices import even_slices
from fedfuse.models.interface import Interface
from fedfuse.models.modes import batch_norms, evaluation_mode

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
        return self._ask(network, inputs, self._mixed_batches(inputs), by_batch=True)

    def goes_by_batch(self, network: nn.Module) -> bool:
        """Whether an answer depends on the inputs beside it."""
        return self.interface.batch_statistics is not None and bool(batch_norms(network))

    def in_words(self) -> str:
        return self.interface.in_words(self.input_shape)

    def _mixed_batches(self, inputs: Tensor) -> Sequence[Tensor]:
        """Of equal size and in an order that depends on the inputs alone, as where the model was evaluated."""
        order = order_of(inputs)
        return [order[where] for where in even_slices(len(inputs), self.interface.batch_statistics or BATCH)]

    def _ask(self, network: nn.Module, inputs: Tensor, batches: Sequence[Tensor], by_batch: bool = False) -> Tensor:
        transform = self.interface.inputs.transform(self.input_shape)
        device = next((parameter.device for parameter in network.parameters()), torch.device("cpu"))
        answers = torch.empty(len(inputs), len(self.interface.class_names))
        with evaluation_mode(network, by_batch), torch.inference_mode():
            for where in batches:
                answers[where] = self._answer(network, transform(inputs[where]).to(device)).cpu()
        return answers

    def _answer(self, network: nn.Module, batch: Tensor) -> Tensor:
        """A file may say other sizes of inputs and classes than its own weights have."""
        expected = (len(batch), len(self.interface.class_names))
        try:
            answer = network(batch)
        except RuntimeError as error:
            raise DataError(
                f"the network cannot take inputs as its file describes them: {first_line(error)}"
            ) from error
        if not isinstance(answer, Tensor) or tuple(answer.shape) != expected:
            raise DataError(f"the network does not give an answer for each of the {expected[1]} classes of its file")
        return answer
