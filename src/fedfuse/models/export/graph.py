"""Formats that hold a network as a graph of operations, with the normalisation inside."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from fedfuse.core.errors import DataError
from fedfuse.core.imports import first_line
from fedfuse.core.randomness import Key
from fedfuse.core.text import TextShape
from fedfuse.data import Transform
from fedfuse.data.dataset import kind_of
from fedfuse.models.classifier import Classifier
from fedfuse.models.export.format import Format
from fedfuse.models.predictor import Predictor

INPUTS, LOGITS, PROBABILITIES = "inputs", "logits", "probabilities"
"""What the ends of a graph are called."""
BATCHES = (1, 2, 7)
"""How many made-up inputs a graph is asked about at a time."""


Answers = tuple[Tensor, Tensor]


class RawGraph(nn.Module):
    """Raw inputs, or token numbers, to logits and probabilities."""

    def __init__(self, network: Classifier, unpacking: nn.Module, transform: Transform | None) -> None:
        super().__init__()
        self.network = network
        self.unpacking = unpacking
        self.transform = transform

    def forward(self, inputs: Tensor) -> Answers:
        inputs = self.unpacking(inputs)
        logits = self.network(inputs if self.transform is None else self.transform(inputs))
        return logits, logits.softmax(dim=1)


class GraphFormat(Format):
    """A subclass says how a graph is written and asked."""

    title: str

    @abstractmethod
    def write_graph(self, graph: RawGraph, example: Tensor, about: dict[str, str], path: Path) -> None:
        """Write the graph for batches of any size like ``example``; ``about`` are further facts for its users."""

    @abstractmethod
    def opened(self, path: Path) -> Callable[[Tensor], Answers]:
        """The network in a file."""

    def reads(self, model: Classifier) -> str:
        example = _fed(_made_up(_predictor(model), 1))
        return f"{INPUTS}: {str(example.dtype).removeprefix('torch.')} N x {' x '.join(map(str, example.shape[1:]))}"

    def gives(self, model: Classifier) -> str:
        return f"{LOGITS}, {PROBABILITIES}: float32 N x {len(_predictor(model).interface.class_names)}"

    def write(self, model: Classifier, path: Path) -> None:
        predictor = _predictor(model)
        about = {"classes": json.dumps(predictor.interface.class_names), INPUTS: self.reads(model)}
        about |= {name: json.dumps(value) for name, value in predictor.interface.inputs.about.items()}
        try:
            with torch.no_grad():
                self.write_graph(_graph(model, predictor), _fed(_made_up(predictor, BATCHES[-1])), about, path)
        except Exception as error:  # the exporters have many ways to fail on networks of one's own
            raise DataError(f"the network cannot be written as {self.title}: {first_line(error)}") from error

    def difference(self, model: Classifier, path: Path) -> float:
        predictor, network = _predictor(model), self.opened(path)
        samples = [_made_up(predictor, count) for count in BATCHES]
        unpacked = predictor.interface.inputs.unpacking()
        return max(_distance(network(_fed(inputs)), predictor.logits(model, unpacked(inputs))) for inputs in samples)


def _distance(found: Answers, logits: Tensor) -> float:
    """The largest one between probabilities, and between logits in relation to the largest of them."""
    of_logits = (found[0] - logits).abs().max() / logits.abs().max().clamp(min=1)
    return float(torch.maximum(of_logits, (found[1] - logits.softmax(dim=1)).abs().max()))


def _predictor(model: Classifier) -> Predictor:
    predictor = model.known()
    if predictor.goes_by_batch(model):
        raise DataError(
            "the model normalises by each batch (federation.batch_norm: batch), which no exported file can; run the "
            "experiment with another federation.batch_norm, or export to .safetensors"
        )
    return predictor


def _graph(model: Classifier, predictor: Predictor) -> RawGraph:
    shape, raw = predictor.input_shape, predictor.interface.inputs
    transform = None if isinstance(shape, TextShape) else raw.transform(shape)
    return RawGraph(model, raw.unpacking(), transform).eval()


def _made_up(predictor: Predictor, count: int) -> Tensor:
    return predictor.interface.inputs.packed(count, predictor.input_shape, Key(0, ("export", count)).torch())


def _fed(inputs: Tensor) -> Tensor:
    """As they go into a graph: raw, or the numbers of tokens in the type that embeddings want."""
    return inputs.long() if kind_of(inputs) == "texts" else inputs
