"""A network and inputs of one's own, in the forms that people have them, as a distillation needs them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fedfuse.core.errors import DataError
from fedfuse.core.imports import first_line
from fedfuse.data import Normalisation, Transform
from fedfuse.runtime.compute import Compute
from fedfuse.runtime.source import Source

MakeNetwork = Callable[[], nn.Module]


class Logits(nn.Module):
    """A network whose answer is its logits, whatever it wraps them in."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, inputs: Tensor) -> Tensor:
        said = self.network(inputs)
        if isinstance(said, Mapping):
            said = said.get("logits")
        elif isinstance(said, tuple | list):
            said = said[0]
        logits = getattr(said, "logits", said)
        if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != len(inputs):
            raise DataError("FedDF: the model must answer a batch of inputs with one row of logits for each")
        return logits


class _AsItIs(Transform):
    """Inputs are as the network sees them."""

    def __init__(self) -> None:
        super().__init__(Normalisation((0.0,), (1.0,)), (1,))

    def __call__(self, inputs: Tensor) -> Tensor:
        return inputs


def maker_of(model: MakeNetwork | nn.Module) -> MakeNetwork:
    """What makes the network: a class or a function that does, or else copies of a network that is there."""
    if isinstance(model, nn.Module):
        return lambda: copy.deepcopy(model)
    if callable(model):
        return model
    raise DataError(f"FedDF: model is a {type(model).__name__}; give a network, its class or a function that makes it")


def made(make: MakeNetwork, source: Source) -> Logits:
    """A network that has answered two of the inputs."""
    network = make()
    if not isinstance(network, nn.Module):
        raise DataError(f"FedDF: model makes a {type(network).__name__}, not a torch module")
    wrapped = Logits(source.compute.place(network))
    try:
        with torch.no_grad():
            wrapped.eval()(source.inputs(source.all_indices()[:2]))
    except DataError:
        raise
    except Exception as error:  # a network of one's own may raise anything
        shape = tuple(source.raw.shape[1:])
        raise DataError(f"FedDF: the model fails on inputs of shape {shape}: {first_line(error)}") from error
    return wrapped


def source_of(inputs: Any, device: str) -> Source:
    """Unlabelled inputs: a tensor or an array, or a dataset, of whose examples the first thing is the input."""
    compute = Compute(torch.device(device), torch.get_num_threads(), channels_last=False)
    return Source("inputs", _batch(inputs), _AsItIs(), compute)


def _batch(inputs: Any) -> Tensor:
    if isinstance(inputs, np.ndarray):
        inputs = torch.from_numpy(inputs) if inputs.dtype.kind in "fiu" else None
    elif not isinstance(inputs, Tensor | Mapping) and hasattr(inputs, "__getitem__") and hasattr(inputs, "__len__"):
        inputs = _stacked([_input(inputs[number]) for number in range(len(inputs))])
    if not isinstance(inputs, Tensor) or inputs.ndim < 2 or not len(inputs):
        raise DataError("FedDF: inputs must be a batch: a tensor, a numpy array or a dataset of equally large tensors")
    if inputs.is_floating_point():
        return inputs.float()
    if inputs.dtype in (torch.int32, torch.int64):
        return inputs.long()
    raise DataError(f"FedDF takes inputs as the model sees them, float32 or tokens in int64, not {inputs.dtype}")


def _input(example: Any) -> Any:
    first = example[0] if isinstance(example, tuple | list) else example
    return torch.as_tensor(first) if isinstance(first, np.ndarray | Tensor) else None


def _stacked(examples: list[Any]) -> Tensor | None:
    shapes = {None if one is None else tuple(one.shape) for one in examples}
    return torch.stack(examples) if len(shapes) == 1 and None not in shapes else None
