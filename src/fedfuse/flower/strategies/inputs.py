"""Inputs of one's own, in the forms that people have them, as a fusion reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.data import Examples, Normalisation, Transform
from fedfuse.runtime.compute import Compute
from fedfuse.runtime.evaluate import Evaluator
from fedfuse.runtime.source import Source

EVALUATED_AT_ONCE = 500


class AsItIs(Transform):
    """Inputs are as the network sees them."""

    def __init__(self) -> None:
        super().__init__(Normalisation((0.0,), (1.0,)), (1,))

    def __call__(self, inputs: Tensor) -> Tensor:
        return inputs


def compute_of(device: str) -> Compute:
    """Where the server computes, with as many threads as torch has now."""
    try:
        place = torch.empty(0, device=device).device
    except (RuntimeError, AssertionError, TypeError):  # torch's ways to say that there is no such device
        raise ConfigError(f"device is {device!r}, which this machine does not have; use 'cpu'") from None
    return Compute(place, torch.get_num_threads(), channels_last=False)


def source_of(inputs: Any, compute: Compute) -> Source:
    """Unlabelled inputs: a tensor or an array, or a dataset, of whose examples the first thing is the input."""
    return Source("inputs", _batch(inputs, "inputs"), AsItIs(), compute)


def evaluator_of(examples: Any, compute: Compute) -> Evaluator:
    """Labelled examples to judge models on: a pair of inputs and labels, or a dataset of such pairs."""
    if isinstance(examples, tuple) and len(examples) == 2:
        inputs, labels = examples
    elif not isinstance(examples, Tensor | Mapping) and hasattr(examples, "__getitem__") and len(examples):
        pairs = [examples[number] for number in range(len(examples))]
        if not all(isinstance(pair, tuple | list) and len(pair) > 1 for pair in pairs):
            raise _no_pairs()
        inputs, labels = [pair[0] for pair in pairs], [int(pair[1]) for pair in pairs]
    else:
        raise _no_pairs()
    batch, numbers = _batch(inputs, "validation"), torch.as_tensor(labels)
    if numbers.is_floating_point() or numbers.shape != (len(batch),):
        raise _no_pairs()
    return Evaluator(Examples(batch, numbers.long()), AsItIs(), compute, EVALUATED_AT_ONCE)


def _no_pairs() -> DataError:
    return DataError("validation must be a pair of inputs and labels, one label for each, or a dataset of such pairs")


def _batch(inputs: Any, what: str) -> Tensor:
    if isinstance(inputs, np.ndarray):
        inputs = torch.from_numpy(inputs) if inputs.dtype.kind in "fiu" else None
    elif not isinstance(inputs, Tensor | Mapping) and hasattr(inputs, "__getitem__") and hasattr(inputs, "__len__"):
        inputs = _stacked([_input(inputs[number]) for number in range(len(inputs))])
    if not isinstance(inputs, Tensor) or inputs.ndim < 2 or not len(inputs):
        raise DataError(f"{what} must be a batch: a tensor, a numpy array or a dataset of equally large tensors")
    if inputs.is_floating_point():
        return inputs.float()
    if inputs.dtype in (torch.int32, torch.int64):
        return inputs.long()
    raise DataError(f"{what} must be as the model sees them, float32 or tokens in int64, not {inputs.dtype}")


def _input(example: Any) -> Any:
    first = example[0] if isinstance(example, tuple | list) else example
    return torch.as_tensor(first) if isinstance(first, np.ndarray | Tensor) else None


def _stacked(examples: list[Any]) -> Tensor | None:
    shapes = {None if one is None else tuple(one.shape) for one in examples}
    return torch.stack(examples) if len(shapes) == 1 and None not in shapes else None
