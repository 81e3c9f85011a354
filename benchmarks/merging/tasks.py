"""Four tasks of one small network: scikit-learn's digits as they are, turned, mirrored and as a negative.

The network is pre-trained on few digits, seen in all four ways, and fine-tuned on more digits that are seen in one way.
Neither the digits on which merges are tuned nor those on which they are tested are among them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights

VIEWS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "upright": lambda digits: digits,
    "turned": lambda digits: digits.rot90(1, (1, 2)),
    "mirrored": lambda digits: digits.flip(2),
    "negative": lambda digits: -digits,
}
PRETRAINED, TRAINED, TUNED = 200, 800, 200
"""Digits of each part; the other 597 are for the test."""
WIDTH = 128


@dataclass(frozen=True)
class Digits:
    """Some digits in [-1, 1], and what they are."""

    inputs: Tensor
    labels: Tensor

    def seen(self, view: str) -> Digits:
        """As one task has them."""
        return Digits(VIEWS[view](self.inputs), self.labels)

    def mixed(self) -> Digits:
        """In all four ways."""
        return Digits(torch.cat([self.seen(view).inputs for view in VIEWS]), self.labels.repeat(len(VIEWS)))


@dataclass(frozen=True)
class Problem:
    """The base, the models in the order of the views, and the digits to measure with."""

    base: Weights
    models: tuple[Weights, ...]
    trained: Digits
    tuning: Digits
    test: Digits


def problem(seed: int, epochs: int) -> Problem:
    """Everything of one seed."""
    key, (inputs, labels) = Key(seed), _all()
    order = torch.randperm(len(inputs), generator=key.child("split").torch())
    parts = order.tensor_split([PRETRAINED, PRETRAINED + TRAINED, PRETRAINED + TRAINED + TUNED])
    few, trained, tuning, test = (Digits(inputs[part], labels[part]) for part in parts)
    with key.child("network").default_generator():
        base = fitted(network(), few.mixed(), 10, key.child("base"))
    models = tuple(fitted(holding(base), trained.seen(view), epochs, key.child(view)) for view in VIEWS)
    return Problem(base, models, trained, tuning, test)


def network() -> nn.Module:
    """Three layers, all linear, so that RegMean leaves only biases to the average."""
    hidden = (nn.Linear(64, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU())
    return nn.Sequential(nn.Flatten(), *hidden, nn.Linear(WIDTH, 10))


def holding(weights: Weights) -> nn.Module:
    model = network()
    weights.load_into(model)
    return model


def fitted(model: nn.Module, digits: Digits, epochs: int, key: Key) -> Weights:
    """The model's weights after SGD with momentum, in batches of 32."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    random = key.torch()
    for _ in range(epochs):
        for batch in torch.randperm(len(digits.labels), generator=random).split(32):
            optimizer.zero_grad()
            F.cross_entropy(model(digits.inputs[batch]), digits.labels[batch]).backward()
            optimizer.step()
    return Weights.of(model)


@torch.no_grad()
def accuracy(model: nn.Module, digits: Digits) -> float:
    return float((model(digits.inputs).argmax(dim=1) == digits.labels).double().mean())


@cache
def _all() -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_digits

    inputs, labels = load_digits(return_X_y=True)
    return torch.tensor(inputs / 8 - 1, dtype=torch.float32).view(-1, 8, 8), torch.tensor(labels)
