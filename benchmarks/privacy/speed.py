"""How long a private step takes: plain, ours and opacus's take turns on the same batch, in one thread.

A step is the gradients of a batch, for the private ones clipped example by example and summed; noise is not counted,
which all would add alike. Seconds are those of the processor: on a busy machine, longer steps wait more often.
"""

from __future__ import annotations

import copy
import statistics
import time
import warnings
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from fedfuse.core.randomness import Key
from fedfuse.core.text import TextShape
from fedfuse.models import Architecture, Classifier, Mlp, create
from fedfuse.models.cnn import Cnn, CnnDeep
from fedfuse.models.convnet import ConvNet
from fedfuse.models.resnet import ResNet
from fedfuse.models.text import TextCnn
from fedfuse.parts.local.example_gradients import ExampleGradients
from fedfuse.parts.local.linear_gradients import LinearGradients, is_linear
from fedfuse.parts.local.objective import Hooks

BATCH, CLASSES, NORM = 64, 10, 1.0
NETWORKS: dict[str, tuple[Architecture, tuple[int, ...]]] = {
    "mlp 64-64-10": (Mlp(hidden=(64,)), (64,)),
    "mlp 784-200-100-10": (Mlp(hidden=(200, 100)), (784,)),
    "cnn2, 28 x 28": (Cnn(arch="cnn2"), (1, 28, 28)),
    "cnn_deep, 28 x 28": (CnnDeep(), (1, 28, 28)),
    "convnet, 32 x 32": (ConvNet(), (3, 32, 32)),
    "resnet8, group norm, 32 x 32": (ResNet(arch="resnet8", norm="group", channels_per_group=16), (3, 32, 32)),
    "text_cnn, 32 of 5,000 words": (TextCnn(), TextShape(32, 5000)),
}


def table(turns: int) -> str:
    """As markdown: medians over turns, as multiples of the plain step's."""
    torch.set_num_threads(1)
    lines = ["| network | parameters | plain, ms | fedfuse | opacus |", "|---|---|---|---|---|"]
    for name, (architecture, shape) in NETWORKS.items():
        model = create(architecture, shape, CLASSES, Key(0)).train()
        inputs, labels = _batch(shape)
        plain, ours, theirs = _in_turns(
            [_plain(model, inputs, labels), _ours(model, inputs, labels), _opacus(model, inputs, labels)], turns
        )
        size = sum(parameter.numel() for parameter in model.parameters())
        line = f"| {name} | {size:,} | {1000 * plain:.2f} | {ours / plain:.1f} x | {theirs / plain:.1f} x |"
        print(line, flush=True)
        lines.append(line)
    return "\n".join(lines)


def _batch(shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    labels = torch.randint(0, CLASSES, (BATCH,), generator=random)
    if isinstance(shape, TextShape):
        return torch.randint(1, shape.vocabulary, (BATCH, shape[0]), generator=random), labels
    return torch.randn(BATCH, *shape, generator=random), labels


def _plain(model: Classifier, inputs: Tensor, labels: Tensor) -> Callable[[], object]:
    def step() -> None:
        model.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()

    return step


def _ours(model: Classifier, inputs: Tensor, labels: Tensor) -> Callable[[], object]:
    gradients = (LinearGradients if is_linear(model) else ExampleGradients)(model, Hooks(), NORM)
    return lambda: gradients.clipped_sum(inputs, labels)


def _opacus(model: Classifier, inputs: Tensor, labels: Tensor) -> Callable[[], object]:
    """Its hooks that collect gradients of examples, and the clipping of its optimiser."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from opacus.grad_sample import GradSampleModule

        wrapped = GradSampleModule(copy.deepcopy(model))

    def step() -> None:
        wrapped.zero_grad()
        F.cross_entropy(wrapped(inputs), labels, reduction="sum").backward()
        parameters = list(wrapped.parameters())
        each = [parameter.grad_sample for parameter in parameters]
        lengths = torch.stack([own.flatten(1).norm(dim=1) for own in each], dim=1).norm(dim=1)
        factors = (NORM / (lengths + 1e-6)).clamp(max=1.0)
        for parameter, own in zip(parameters, each, strict=True):
            parameter.grad = torch.einsum("i,i...", factors, own)
            parameter.grad_sample = None

    return step


def _in_turns(steps: list[Callable[[], object]], turns: int) -> list[float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step in steps:
            step()
        seconds: list[list[float]] = [[] for _ in steps]
        for _ in range(turns):
            for own, step in zip(seconds, steps, strict=True):
                began = time.process_time()
                step()
                own.append(time.process_time() - began)
    return [statistics.median(own) for own in seconds]
