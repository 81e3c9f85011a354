"""The small CNNs of the FedED thesis (MNIST and EMNIST).

``cnn1``, ``cnn2``, ``cnn3``: one 5x5 convolution, 4x4 max-pooling, ReLU, one linear layer. They differ in their
channels. On EMNIST the thesis widens CNN2 to 16 channels (``channels: 16``) and calls ``cnn_deep`` its CNN3. The thesis
has ReLU before the pooling, which gives the same numbers and gradients at up to twice the cost of a step.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from torch import nn

from fedfuse.models.architecture import Architecture, require_image
from fedfuse.models.classifier import Classifier, LayeredClassifier

Channels = Annotated[int, Field(ge=1)]

_MNIST_CHANNELS = {"cnn1": 2, "cnn2": 8, "cnn3": 16}


class Cnn(Architecture):
    """One convolution and one linear layer; ``channels`` replaces the thesis's MNIST number (2, 8 or 16)."""

    arch: Literal["cnn1", "cnn2", "cnn3"]
    channels: Channels | None = Field(None, description="of the convolution; 2, 8 or 16 by the name if not given")

    def build(self, input_shape: tuple[int, ...], classes: int) -> Classifier:
        inputs, height, width = require_image(self.arch, input_shape, smallest=4)
        channels = self.channels or _MNIST_CHANNELS[self.arch]
        layers = nn.Sequential(*_stage(inputs, channels, pool=4), nn.Flatten())
        return LayeredClassifier(layers, channels * (height // 4) * (width // 4), classes)


class CnnDeep(Architecture):
    """Two convolutions, each with 2x2 max-pooling and ReLU, and one linear layer."""

    arch: Literal["cnn_deep"] = "cnn_deep"
    channels: tuple[Channels, Channels] = Field((8, 16), description="of the two convolutions")

    def build(self, input_shape: tuple[int, ...], classes: int) -> Classifier:
        inputs, height, width = require_image(self.arch, input_shape, smallest=4)
        first, second = self.channels
        layers = nn.Sequential(*_stage(inputs, first, pool=2), *_stage(first, second, pool=2), nn.Flatten())
        return LayeredClassifier(layers, second * (height // 4) * (width // 4), classes)


def _stage(inputs: int, outputs: int, pool: int) -> tuple[nn.Module, ...]:
    return nn.Conv2d(inputs, outputs, kernel_size=5, padding=2), nn.MaxPool2d(pool), nn.ReLU()
