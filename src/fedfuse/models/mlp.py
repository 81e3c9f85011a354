"""Multi-layer perceptron: the small model for vectors, and for images when structure does not matter."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field
from torch import nn

from fedfuse.models.architecture import Architecture, require_numbers
from fedfuse.models.classifier import Classifier, LayeredClassifier


class Mlp(Architecture):
    """Flatten, then a linear layer and ReLU per hidden width; no hidden width is logistic regression."""

    arch: Literal["mlp"] = "mlp"
    hidden: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (64,), max_length=1000, description="width of each hidden layer; [] is logistic regression"
    )

    def build(self, input_shape: tuple[int, ...], classes: int) -> Classifier:
        require_numbers(self.arch, input_shape)
        widths = (math.prod(input_shape), *self.hidden)
        layers = nn.Sequential(nn.Flatten())
        for before, after in pairwise(widths):
            layers.extend([nn.Linear(before, after), nn.ReLU()])
        return LayeredClassifier(layers, widths[-1], classes)
