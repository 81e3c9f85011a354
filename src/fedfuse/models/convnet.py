"""The ConvNet of FedBE (Chen and Chao, 2021): three valid 3x3 convolutions and a hidden layer of 64."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import nn

from fedfuse.models.architecture import Architecture, require_image
from fedfuse.models.classifier import Classifier, LayeredClassifier
from fedfuse.models.initialisation import INITIALISE, Initialisation

SMALLEST_IMAGE = 18
"""The first size of which two valid convolutions with pooling leave the 3x3 pixels that the third one needs."""


class ConvNet(Architecture):
    """``extra_layers`` are size-preserving convolutions after the third one, for FedBE's depth study."""

    arch: Literal["convnet"] = "convnet"
    extra_layers: int = Field(0, ge=0, description="more convolutions after the third, for FedBE's study of depth")
    initialisation: Initialisation | None = Field(None, description="torch's own if not given; FedBE's code: xavier")

    def build(self, input_shape: tuple[int, ...], classes: int) -> Classifier:
        inputs, height, width = require_image(self.arch, input_shape, SMALLEST_IMAGE)
        layers = nn.Sequential(
            *(nn.Conv2d(inputs, 32, kernel_size=3), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(32, 64, kernel_size=3), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(64, 64, kernel_size=3), nn.ReLU()),
        )
        for _ in range(self.extra_layers):
            layers.extend([nn.Conv2d(64, 64, kernel_size=3, padding=1), nn.ReLU()])
        layers.extend([nn.Flatten(), nn.Linear(64 * _pixels_left(height) * _pixels_left(width), 64), nn.ReLU()])
        network = LayeredClassifier(layers, 64, classes)
        if self.initialisation is not None:
            network.apply(INITIALISE[self.initialisation])
        return network


def _pixels_left(side: int) -> int:
    """Of one side, after (valid 3x3, pool 2) twice and a last valid 3x3."""
    for _ in range(2):
        side = (side - 2) // 2
    return side - 2
