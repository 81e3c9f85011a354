"""Networks as other people write them: none of them knows fedfuse."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

NOT_A_FUNCTION = 3
KEPT = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))


def plain(input_shape: tuple[int, ...], classes: int, hidden: int = 6) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(input_shape), hidden), nn.ReLU(), nn.Linear(hidden, classes))


class Words(nn.Module):
    """Reads tokens."""

    def __init__(self, input_shape: Any, classes: int) -> None:
        super().__init__()
        self.embedding = nn.EmbeddingBag(input_shape.vocabulary, 5, padding_idx=0)
        self.out = nn.Linear(5, classes)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.out(self.embedding(x))
        return logits


def only_linear(input_shape: tuple[int, ...], classes: int) -> nn.Module:
    return nn.Linear(input_shape[0], classes)


def lazy(classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(6), nn.ReLU(), nn.LazyLinear(classes))


class Vision(nn.Module):
    """In torchvision's manner: ``features`` and ``classifier`` are modules with something between them."""

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(4, num_classes))

    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = self.classifier(self.features(x).mean(dim=(2, 3)))
        return h


class Functional(nn.Module):
    """A forward of functions; the layers are defined in another order than they run, one of them never."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.out = nn.Linear(6, classes)
        self.unused = nn.Linear(6, classes)
        self.first = nn.Linear(64, 6)
        self.register_buffer("order", torch.arange(6))
        self.register_buffer("scale", torch.ones(6))

    def forward(self, x: Tensor) -> Tensor:
        h = F.dropout(F.relu(self.first(x.flatten(1))), 0.3, self.training)
        logits: Tensor = self.out((h * self.scale)[:, self.order])
        return logits


class Parts(nn.Module):
    """Has what a fedfuse classifier has; its last layer is not a linear one."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.body = nn.Linear(64, 5)
        self.classifier = nn.Sequential(nn.ReLU(), nn.Linear(5, 4), nn.Linear(4, classes), nn.Tanh())

    def features(self, x: Tensor) -> Tensor:
        h: Tensor = self.body(x.flatten(1))
        return h

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.features(x))
        return logits


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.reduce = nn.Linear(64, 5)
        self.first = nn.Linear(5, 5)
        self.second = nn.Linear(5, 5)
        self.second.weight = self.first.weight
        self.out = nn.Linear(5, classes)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.out(self.second(F.relu(self.first(self.reduce(x.flatten(1))))))
        return logits


@dataclass
class Output:
    logits: Tensor
    loss: Tensor | None = None


class Wrapped(nn.Module):
    """Returns its logits as ``wrap`` has them."""

    def __init__(self, num_labels: int, wrap: str = "object") -> None:
        super().__init__()
        self.first = nn.Linear(64, 6)
        self.out = nn.Linear(6, num_labels)
        self.wrap = wrap

    def forward(self, x: Tensor) -> Any:
        logits = self.out(F.relu(self.first(x.flatten(1))))
        wraps = {
            "object": Output(logits),
            "tuple": (logits, None),
            "softmax": logits.softmax(dim=1),
            "namespace of nothing": SimpleNamespace(logits=None),
            "tuple in training": (logits, logits) if self.training else logits,
        }
        return wraps[self.wrap]


class Counting(nn.Module):
    """Counts its batches in an integer buffer."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.out = nn.Linear(64, classes)
        self.register_buffer("batches", torch.zeros((), dtype=torch.long))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.batches += 1
        logits: Tensor = self.out(x.flatten(1))
        return logits


class Unreached(nn.Module):
    """A lazy layer that never runs."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.out = nn.Linear(64, classes)
        self.never = nn.LazyLinear(3)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.out(x.flatten(1))
        return logits


def without_linear(classes: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, classes, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())


def double(classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, classes)).double()


def kept() -> nn.Module:
    return KEPT


def number(classes: int) -> int:
    return classes


def failing(classes: int) -> nn.Module:
    raise RuntimeError(f"no weights for {classes} classes\nsecond line")


class Lengths(nn.Module):
    """Sees how long the rows are, padding included."""

    def __init__(self, input_shape: Any, classes: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(input_shape.vocabulary, 5)
        self.out = nn.Linear(5, classes)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.out(self.embedding(x).mean(dim=1))
        return logits


class Detached(nn.Module):
    """Nothing below the classifier learns: its inputs are cut off, or nothing wants to be trained."""

    def __init__(self, classes: int, frozen: str = "") -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(64, 5), nn.ReLU())
        self.head = nn.Linear(5, classes)
        for name, parameter in self.named_parameters():
            parameter.requires_grad = not (frozen and name.startswith(frozen))

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            h = self.body(x)
        logits: Tensor = self.head(h)
        return logits


def frozen(classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, classes)).requires_grad_(False)


MADE = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
